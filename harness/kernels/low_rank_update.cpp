#include "harness/kernels/low_rank_update.h"

#include <algorithm>
#include <vector>

#include "harness/base/check.h"
#include "harness/kernels/parallel.h"
#include "harness/kernels/scratch.h"
#include "harness/kernels/widen.h"

namespace kvlab {
namespace {

constexpr int64_t kRowsPerTask = 12;

template <typename Element>
void add_row(const float* delta, int64_t size, Element* y) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    y[i] = from_float<Element>(to_float(y[i]) + delta[i]);
  }
}

}  // namespace

LowRankUpdate LowRankUpdate::pack(const float* a, const float* b, int64_t rank,
                                  int64_t out_features, int64_t in_features, float scale) {
  std::vector<float> scaled(b, b + out_features * rank);
  for (float& value : scaled) {
    value *= scale;
  }
  LowRankUpdate update;
  update.a_ = PackedLinear::pack(ElementType::kFloat32, a, rank, in_features, in_features);
  update.b_ = PackedLinear::pack(ElementType::kFloat32, scaled.data(), out_features, rank, rank);
  return update;
}

void LowRankUpdate::add_to(ElementType type, const void* x, int64_t rows, int64_t x_row_stride,
                           void* y, int64_t y_row_stride) const {
  KVLAB_CHECK(!empty());
  const int64_t in_features = a_.in_features();
  const int64_t rank = a_.out_features();
  const int64_t out_features = b_.out_features();
  const int64_t element = element_size(type);
  parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](int64_t task, int) {
    const int64_t first = task * kRowsPerTask;
    const int64_t count = std::min(kRowsPerTask, rows - first);
    auto* wide = static_cast<float*>(
        thread_scratch(3, count * (in_features + rank + out_features) * sizeof(float)));
    float* inner = wide + count * in_features;
    float* delta = inner + count * rank;
    for (int64_t r = 0; r < count; ++r) {
      const char* row = static_cast<const char*>(x) + (first + r) * x_row_stride * element;
      if (type == ElementType::kFloat32) {
        widen(reinterpret_cast<const float*>(row), in_features, wide + r * in_features);
      } else {
        widen(reinterpret_cast<const BFloat16*>(row), in_features, wide + r * in_features);
      }
    }
    a_.forward(wide, count, in_features, inner, rank, ElementType::kFloat32);
    b_.forward(inner, count, rank, delta, out_features, ElementType::kFloat32);
    for (int64_t r = 0; r < count; ++r) {
      char* row = static_cast<char*>(y) + (first + r) * y_row_stride * element;
      if (type == ElementType::kFloat32) {
        add_row(delta + r * out_features, out_features, reinterpret_cast<float*>(row));
      } else {
        add_row(delta + r * out_features, out_features, reinterpret_cast<BFloat16*>(row));
      }
    }
  });
}

}  // namespace kvlab
