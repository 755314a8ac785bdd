// The best positions of a row of scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvlab {

// The `count` positions with the highest scores, ascending; among equal scores the lower positions,
// NaN below everything. count <= scores.size().
std::vector<int32_t> top_positions(std::span<const float> scores, int64_t count);

}  // namespace kvlab
