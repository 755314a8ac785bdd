#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "harness/kernels/decode_attention.h"

namespace kvlab {
namespace {

template <typename Element>
const Element* entry(const void* prompt, const void* fresh, int64_t prompt_len, int64_t index,
                     int64_t head_dim) {
  return index < prompt_len ? static_cast<const Element*>(prompt) + index * head_dim
                            : static_cast<const Element*>(fresh) + (index - prompt_len) * head_dim;
}

template <typename Element>
void attend(const DecodeAttentionArgs& args, const DecodeHead& head) {
  const int64_t len = head.prompt_len + head.new_len;
  std::vector<float> weights(len);
  std::vector<float> output(args.head_dim);
  for (int64_t row = 0; row < args.group_size; ++row) {
    const Element* query = static_cast<const Element*>(head.queries) + row * args.head_dim;
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < len; ++i) {
      const Element* key =
          entry<Element>(head.prompt_keys, head.new_keys, head.prompt_len, i, args.head_dim);
      float dot = 0;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        dot += to_float(query[d]) * to_float(key[d]);
      }
      weights[i] = dot * args.scale;
      largest = std::max(largest, weights[i]);
    }
    float sum = 0;
    std::fill(output.begin(), output.end(), 0.0F);
    for (int64_t i = 0; i < len; ++i) {
      const float weight = std::exp(weights[i] - largest);
      const Element* value =
          entry<Element>(head.prompt_values, head.new_values, head.prompt_len, i, args.head_dim);
      sum += weight;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        output[d] += weight * to_float(value[d]);
      }
    }
    Element* out = static_cast<Element*>(head.output) + row * args.head_dim;
    for (int64_t d = 0; d < args.head_dim; ++d) {
      out[d] = from_float<Element>(output[d] / sum);
    }
  }
}

}  // namespace

void decode_attention_reference(const DecodeAttentionArgs& args) {
  for (const DecodeHead& head : args.heads) {
    if (args.type == ElementType::kFloat32) {
      attend<float>(args, head);
    } else {
      attend<BFloat16>(args, head);
    }
  }
}

}  // namespace kvlab
