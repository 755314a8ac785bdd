// y = x W^T + bias for a few rows, with the weights packed once at load.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/kernels/element.h"

namespace kvlab {

class PackedLinear final {
 public:
  PackedLinear() = default;

  // Copies the weights [out_features, in_features] (row_stride elements from row to row), and the
  // bias [out_features] of the same type where not null.
  static PackedLinear pack(ElementType type, const void* weights, int64_t out_features,
                           int64_t in_features, int64_t row_stride, const void* bias = nullptr);

  // y[r, n] = sum over k of x[r, k] * W[n, k] + bias[n], r < rows. `x` has the weights' type, `y`
  // is float32 or the weights' type; sums are float32. Row strides count elements. A row's result
  // does not depend, bit for bit, on the other rows, their number, or the number of threads.
  void forward(const void* x, int64_t rows, int64_t x_row_stride, void* y, int64_t y_row_stride,
               ElementType y_type) const;

  // The same from the packed weights in plain loops.
  void forward_reference(const void* x, int64_t rows, int64_t x_row_stride, void* y,
                         int64_t y_row_stride, ElementType y_type) const;

  ElementType type() const { return type_; }
  int64_t out_features() const { return out_features_; }
  int64_t in_features() const { return in_features_; }
  int64_t packed_bytes() const { return packed_bytes_; }  // read once per call

 private:
  struct Free {
    void operator()(void* pointer) const;
  };
  ElementType type_ = ElementType::kFloat32;
  int64_t out_features_ = 0;
  int64_t in_features_ = 0;
  int64_t packed_bytes_ = 0;
  std::unique_ptr<void, Free> packed_;
  std::vector<float> bias_;  // empty: none
};

}  // namespace kvlab
