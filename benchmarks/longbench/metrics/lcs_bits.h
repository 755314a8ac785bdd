// Longest common subsequences with one bit per table cell (Hyyro 2004, after Crochemore et al.):
// 64 cells of a row are computed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kvlab {

// One row of the table t[i][j] of LCS lengths between the first i elements of one sequence and the
// first j of another, which has `width` elements. Starts as row 0.
class LcsRow final {
 public:
  explicit LcsRow(size_t width);

  // Goes to the next row. `matches`: the positions 0..width-1 of the second sequence that equal the
  // row's element, in any order.
  void advance(std::span<const uint32_t> matches);

  // Whether t[i][j] > t[i][j-1], for j in 1..width.
  bool rises_at(size_t j) const { return ((flat_[(j - 1) / 64] >> ((j - 1) % 64)) & 1U) == 0; }

  // t[i][width].
  size_t length() const;

 private:
  size_t width_;
  std::vector<uint64_t> flat_;     // bit j-1: t[i][j] equals t[i][j-1]
  std::vector<uint64_t> matches_;  // scratch, all zero between calls
};

}  // namespace kvlab
