#include "harness/kernels/packed_linear.h"
#include "harness/kernels/packed_linear_kernels.h"

namespace kvlab {
namespace {

// Output feature n of one row, from the panels.
template <typename Element>
float dot(const Element* x, const Element* packed, int64_t n, int64_t in_features) {
  constexpr int64_t kPerStep = 4 / static_cast<int64_t>(sizeof(Element));
  const int64_t steps = (in_features + kPerStep - 1) / kPerStep;
  const Element* panel = packed + n / kPanelWidth * steps * kPerStep * kPanelWidth;
  float sum = 0;
  for (int64_t k = 0; k < in_features; ++k) {
    const int64_t place =
        k / kPerStep * kPerStep * kPanelWidth + n % kPanelWidth * kPerStep + k % kPerStep;
    sum += to_float(x[k]) * to_float(panel[place]);
  }
  return sum;
}

}  // namespace

void PackedLinear::forward_reference(const void* x, int64_t rows, int64_t x_row_stride, void* y,
                                     int64_t y_row_stride, ElementType y_type) const {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = 0; n < out_features_; ++n) {
      float sum = 0;
      if (type_ == ElementType::kFloat32) {
        sum = dot(static_cast<const float*>(x) + r * x_row_stride,
                  static_cast<const float*>(packed_.get()), n, in_features_);
      } else {
        sum = dot(static_cast<const BFloat16*>(x) + r * x_row_stride,
                  static_cast<const BFloat16*>(packed_.get()), n, in_features_);
      }
      sum += bias_.empty() ? 0.0F : bias_[n];
      if (y_type == ElementType::kFloat32) {
        static_cast<float*>(y)[r * y_row_stride + n] = sum;
      } else {
        static_cast<BFloat16*>(y)[r * y_row_stride + n] = to_bfloat16(sum);
      }
    }
  }
}

}  // namespace kvlab
