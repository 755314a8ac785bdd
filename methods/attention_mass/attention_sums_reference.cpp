#include <algorithm>
#include <cmath>

#include "methods/attention_mass/attention_sums.h"

namespace kvlab {
namespace {

template <typename Element>
void add_head(const AttentionSumsArgs& args, int64_t head) {
  const int64_t kv_head = head / (args.num_heads / args.num_kv_heads);
  float* sums = args.sums + head * args.sums_head_stride;
  for (int64_t row = 0; row < args.q_len; ++row) {
    const int64_t last = args.first_position() + row;
    const int64_t first =
        args.sliding_window > 0 ? std::max<int64_t>(0, last - args.sliding_window + 1) : 0;
    const Element* query = row_of<Element>(args.queries, head, row);
    for (int64_t key = first; key < std::min(last + 1, args.kv_len); ++key) {
      const Element* key_row = row_of<Element>(args.keys, kv_head, key);
      float dot = 0;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        dot += to_float(query[d]) * to_float(key_row[d]);
      }
      sums[key] += std::exp(dot * args.scale - args.logsumexp[head * args.q_len + row]);
    }
  }
}

}  // namespace

void add_attention_sums_reference(const AttentionSumsArgs& args) {
  for (int64_t head = 0; head < args.num_heads; ++head) {
    if (args.type == ElementType::kFloat32) {
      add_head<float>(args, head);
    } else {
      add_head<BFloat16>(args, head);
    }
  }
}

}  // namespace kvlab
