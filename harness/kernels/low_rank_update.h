// y += x A^T B^T for a few rows: a low-rank update beside a linear layer (LoRA, arXiv 2106.09685).
#pragma once

#include <cstdint>

#include "harness/kernels/packed_linear.h"

namespace kvlab {

class LowRankUpdate final {
 public:
  LowRankUpdate() = default;

  // Copies a [rank, in_features] and b [out_features, rank], both contiguous; b times `scale`.
  static LowRankUpdate pack(const float* a, const float* b, int64_t rank, int64_t out_features,
                            int64_t in_features, float scale);

  // x [rows, in_features] and y [rows, out_features] of `type`; row strides count elements. Sums
  // are float32 and meet y in one rounding. A row's result does not depend, bit for bit, on the
  // other rows, their number, or the number of threads.
  void add_to(ElementType type, const void* x, int64_t rows, int64_t x_row_stride, void* y,
              int64_t y_row_stride) const;

  int64_t in_features() const { return a_.in_features(); }
  bool empty() const { return a_.out_features() == 0; }

 private:
  PackedLinear a_;
  PackedLinear b_;
};

}  // namespace kvlab
