#include "methods/attention_mass/top_k.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/base/check.h"

namespace kvlab {

std::vector<int32_t> top_positions(std::span<const float> scores, int64_t count) {
  KVLAB_CHECK(count >= 0 && count <= static_cast<int64_t>(scores.size()));
  std::vector<int32_t> positions(scores.size());
  std::iota(positions.begin(), positions.end(), 0);
  const auto before = [&](int32_t a, int32_t b) {
    const bool nan_a = std::isnan(scores[a]);
    const bool nan_b = std::isnan(scores[b]);
    if (nan_a || nan_b) {
      return nan_a == nan_b ? a < b : nan_b;
    }
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  };
  if (count < static_cast<int64_t>(positions.size())) {
    std::nth_element(positions.begin(), positions.begin() + count, positions.end(), before);
    positions.resize(count);
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

}  // namespace kvlab
