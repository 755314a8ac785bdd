#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "methods/attention_mass/attention_mass.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

template <typename Element>
float score(const Element* query, const Element* key, const AttentionMassArgs& args) {
  float dot = 0;
  for (int64_t d = 0; d < args.head_dim; ++d) {
    dot += to_float(query[d]) * to_float(key[d]);
  }
  return dot * args.scale;
}

template <typename Element>
void add_row(const AttentionMassArgs& args, int64_t head, int64_t row, float* mass) {
  const int64_t kv_head = head / (args.num_heads / args.num_kv_heads);
  const int64_t first = args.first_visible != nullptr ? args.first_visible[row] : 0;
  const int64_t last = args.visible != nullptr ? args.visible[row] : args.num_keys;
  const int64_t extra =
      args.extra_visible != nullptr ? args.extra_visible[row] : args.num_extra_keys;
  const Element* query = row_of<Element>(args.queries, head, row);
  std::vector<float> weights;
  for (int64_t key = first; key < last; ++key) {
    weights.push_back(score(query, row_of<Element>(args.keys, kv_head, key), args));
  }
  const size_t scored = weights.size();
  for (int64_t key = 0; key < extra; ++key) {
    weights.push_back(score(query, row_of<Element>(args.extra_keys, kv_head, key), args));
  }
  if (scored == 0) {
    return;
  }
  const float largest = *std::max_element(weights.begin(), weights.end());
  float sum = 0;
  for (float& weight : weights) {
    weight = std::exp(weight - largest);
    sum += weight;
  }
  for (size_t i = 0; i < scored; ++i) {
    const float weight = weights[i] / sum;
    float& total = mass[first + static_cast<int64_t>(i)];
    total = args.reduction == RowReduction::kMax ? larger_or_broken(total, weight) : total + weight;
  }
}

}  // namespace

void attention_mass_reference(const AttentionMassArgs& args) {
  for (int64_t head = 0; head < args.num_heads; ++head) {
    float* mass = args.mass + head * args.num_keys;
    std::fill(mass, mass + args.num_keys, 0.0F);
    for (int64_t row = 0; row < args.num_rows; ++row) {
      if (args.type == ElementType::kFloat32) {
        add_row<float>(args, head, row, mass);
      } else {
        add_row<BFloat16>(args, head, row, mass);
      }
    }
    if (args.reduction == RowReduction::kMean) {
      for (int64_t key = 0; key < args.num_keys; ++key) {
        mass[key] /= static_cast<float>(args.num_rows);
      }
    }
  }
}

}  // namespace kvlab
