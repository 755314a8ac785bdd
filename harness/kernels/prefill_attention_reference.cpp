#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/kernels/prefill_attention.h"

namespace kvlab {
namespace {

template <typename Element>
void attend_row(const PrefillAttentionArgs& args, int64_t head, int64_t row,
                std::vector<float>& weights) {
  const int64_t kv_head = head / (args.num_heads / args.num_kv_heads);
  const int64_t last = args.kv_len - args.q_len + row;
  const int64_t first =
      args.sliding_window > 0 ? std::max<int64_t>(0, last - args.sliding_window + 1) : 0;
  const Element* query = row_of<Element>(args.queries, head, row);
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t key = first; key <= last; ++key) {
    const Element* key_row = row_of<Element>(args.keys, kv_head, key);
    float dot = 0;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      dot += to_float(query[d]) * to_float(key_row[d]);
    }
    weights[key] = dot * args.scale;
    largest = std::max(largest, weights[key]);
  }
  float sum = 0;
  for (int64_t key = first; key <= last; ++key) {
    weights[key] = std::exp(weights[key] - largest);
    sum += weights[key];
  }
  std::vector<float> output(args.head_dim, 0.0F);
  for (int64_t key = first; key <= last; ++key) {
    const Element* value = row_of<Element>(args.values, kv_head, key);
    for (int64_t d = 0; d < args.head_dim; ++d) {
      output[d] += weights[key] * to_float(value[d]);
    }
  }
  Element* out = row_of<Element>(args.output, head, row);
  for (int64_t d = 0; d < args.head_dim; ++d) {
    out[d] = from_float<Element>(output[d] / sum);
  }
  if (args.logsumexp != nullptr) {
    args.logsumexp[head * args.q_len + row] = largest + std::log(sum);
  }
}

template <typename Element>
void attend(const PrefillAttentionArgs& args) {
  std::vector<float> weights(args.kv_len);
  for (int64_t head = 0; head < args.num_heads; ++head) {
    for (int64_t row = 0; row < args.q_len; ++row) {
      attend_row<Element>(args, head, row, weights);
    }
  }
}

}  // namespace

void prefill_attention_reference(const PrefillAttentionArgs& args) {
  if (args.type == ElementType::kFloat32) {
    attend<float>(args);
  } else {
    attend<BFloat16>(args);
  }
}

}  // namespace kvlab
