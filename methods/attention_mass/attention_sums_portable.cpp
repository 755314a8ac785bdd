#include <algorithm>

#include "harness/kernels/portable_math.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

template <typename Element>
void run(const SumsBlock& block) {
  const AttentionSumsArgs& args = *block.args;
  const int64_t prefix = args.first_position();
  for (int64_t key = block.key_begin; key < block.key_end; ++key) {
    const Element* key_row = row_of<Element>(args.keys, block.kv_head, key);
    const int64_t begin = std::max<int64_t>(0, key - prefix);
    const int64_t end = args.sliding_window > 0
                            ? std::min(args.q_len, key + args.sliding_window - prefix)
                            : args.q_len;
    float total = 0;
    for (int64_t row = begin; row < end; ++row) {
      const Element* query = row_of<Element>(args.queries, block.head, row);
      float dot = 0;
#pragma omp simd reduction(+ : dot)
      for (int64_t d = 0; d < args.head_dim; ++d) {
        dot += to_float(query[d]) * to_float(key_row[d]);
      }
      total += exp_portable(dot * args.scale - args.logsumexp[block.head * args.q_len + row]);
    }
    args.sums[block.head * args.sums_head_stride + key] += total;
  }
}

}  // namespace

void sums_block_portable(const SumsBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    run<float>(block);
  } else {
    run<BFloat16>(block);
  }
}

}  // namespace kvlab
