#include "harness/kernels/packed_linear.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "harness/base/check.h"
#include "harness/kernels/dispatch.h"
#include "harness/kernels/packed_linear_kernels.h"
#include "harness/kernels/parallel.h"

namespace kvlab {
namespace {

// Rows of one task: their inputs stay in the second-level cache while the panels pass.
constexpr int64_t kRowsPerTask = 120;
// Few rows are bound by reading the weights, which goes fastest in one long stretch a thread; many
// rows by arithmetic, where small tasks balance the threads better.
constexpr int64_t kFewRows = 64;
constexpr int64_t kTasksPerThread = 8;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

template <typename Element>
void pack_panels(const Element* weights, int64_t out_features, int64_t in_features,
                 int64_t row_stride, Element* packed) {
  constexpr int64_t kPerStep = 4 / static_cast<int64_t>(sizeof(Element));
  const int64_t steps = divide_up(in_features, kPerStep);
  const int64_t panel_elements = steps * kPerStep * kPanelWidth;
  for (int64_t n = 0; n < out_features; ++n) {
    Element* lane = packed + n / kPanelWidth * panel_elements + n % kPanelWidth * kPerStep;
    for (int64_t k = 0; k < in_features; ++k) {
      lane[k / kPerStep * kPerStep * kPanelWidth + k % kPerStep] = weights[n * row_stride + k];
    }
  }
}

}  // namespace

void PackedLinear::Free::operator()(void* pointer) const { std::free(pointer); }

PackedLinear PackedLinear::pack(ElementType type, const void* weights, int64_t out_features,
                                int64_t in_features, int64_t row_stride, const void* bias) {
  KVLAB_CHECK(out_features > 0 && in_features > 0);
  PackedLinear linear;
  linear.type_ = type;
  linear.out_features_ = out_features;
  linear.in_features_ = in_features;
  const int64_t steps = divide_up(in_features, 4 / element_size(type));
  const int64_t panels = divide_up(out_features, kPanelWidth);
  linear.packed_bytes_ = panels * steps * kStepBytes;
  linear.packed_.reset(std::aligned_alloc(64, linear.packed_bytes_));
  if (linear.packed_ == nullptr) {
    throw std::bad_alloc();
  }
  std::memset(linear.packed_.get(), 0, linear.packed_bytes_);
  if (type == ElementType::kFloat32) {
    pack_panels(static_cast<const float*>(weights), out_features, in_features, row_stride,
                static_cast<float*>(linear.packed_.get()));
  } else {
    pack_panels(static_cast<const BFloat16*>(weights), out_features, in_features, row_stride,
                static_cast<BFloat16*>(linear.packed_.get()));
  }
  if (bias != nullptr) {
    linear.bias_.resize(panels * kPanelWidth);
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
  KVLAB_CHECK(y_type == ElementType::kFloat32 || y_type == type_);
  if (cpu_level() == CpuLevel::kReference) {
    forward_reference(x, rows, x_row_stride, y, y_row_stride, y_type);
    return;
  }
  PackedLinearArgs args;
  args.type = type_;
  args.y_type = y_type;
  args.packed = static_cast<const char*>(packed_.get());
  args.bias = bias_.empty() ? nullptr : bias_.data();
  args.in_features = in_features_;
  args.out_features = out_features_;
  args.steps = divide_up(in_features_, 4 / element_size(type_));
  args.x = static_cast<const char*>(x);
  args.x_row_bytes = x_row_stride * element_size(type_);
  args.y = static_cast<char*>(y);
  args.y_row_bytes = y_row_stride * element_size(y_type);
  const PackedLinearBlock block = KVLAB_PRODUCT_KERNEL(packed_linear_block);

  const int64_t panels = divide_up(out_features_, kPanelWidth);
  const int64_t row_tasks = divide_up(rows, kRowsPerTask);
  const int64_t rows_per_task = divide_up(rows, std::max<int64_t>(1, row_tasks));
  const int64_t wanted = rows <= kFewRows ? kernel_threads()
                                          : divide_up(kTasksPerThread * kernel_threads(),
                                                      std::max<int64_t>(1, row_tasks));
  // Pairs of panels, which the inner loops take together.
  const int64_t panels_per_task = std::max<int64_t>(2, divide_up(panels, 2 * wanted) * 2);
  const int64_t panel_tasks = divide_up(panels, panels_per_task);
  parallel_for(row_tasks * panel_tasks, [&](int64_t task, int) {
    const int64_t row = task / panel_tasks * rows_per_task;
    const int64_t panel = task % panel_tasks * panels_per_task;
    block(args, row, std::min(rows, row + rows_per_task), panel,
          std::min(panels, panel + panels_per_task));
  });
}

}  // namespace kvlab
