#include "harness/kernels/packed_linear.h"

#include <cstdlib>
#include <cstring>

#include "harness/base/check.h"

namespace kvlab {

void PackedLinear::Free::operator()(void* pointer) const { std::free(pointer); }

PackedLinear PackedLinear::pack(ElementType type, const void* weights, int64_t out_features,
                                int64_t in_features, int64_t row_stride, const void* bias) {
  PackedLinear linear;
  linear.type_ = type;
  linear.out_features_ = out_features;
  linear.in_features_ = in_features;
  const int64_t row_bytes = in_features * element_size(type);
  linear.packed_bytes_ = out_features * row_bytes;
  linear.packed_.reset(std::malloc(linear.packed_bytes_));
  KVLAB_CHECK(linear.packed_ != nullptr);
  for (int64_t n = 0; n < out_features; ++n) {
    std::memcpy(static_cast<char*>(linear.packed_.get()) + n * row_bytes,
                static_cast<const char*>(weights) + n * row_stride * element_size(type), row_bytes);
  }
  if (bias != nullptr) {
    linear.bias_.resize(out_features);
    for (int64_t n = 0; n < out_features; ++n) {
      linear.bias_[n] = type == ElementType::kFloat32
                            ? static_cast<const float*>(bias)[n]
                            : to_float(static_cast<const BFloat16*>(bias)[n]);
    }
  }
  return linear;
}

void PackedLinear::forward(const void* x, int64_t rows, int64_t x_row_stride, void* y,
                           int64_t y_row_stride, ElementType y_type) const {
  forward_reference(x, rows, x_row_stride, y, y_row_stride, y_type);
}

}  // namespace kvlab
