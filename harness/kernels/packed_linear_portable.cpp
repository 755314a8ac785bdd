#include <bit>
#include <cstring>

#include "harness/kernels/packed_linear_kernels.h"

namespace kvlab {
namespace {

void take_step(const float* x, const char* step, float* sums) {
  const auto* weights = reinterpret_cast<const float*>(step);
  const float value = *x;
#pragma omp simd
  for (int lane = 0; lane < kPanelWidth; ++lane) {
    sums[lane] += value * weights[lane];
  }
}

void take_step(float even, float odd, const char* step, float* sums) {
  const auto* pairs = reinterpret_cast<const uint32_t*>(step);
#pragma omp simd
  for (int lane = 0; lane < kPanelWidth; ++lane) {
    const uint32_t pair = pairs[lane];
    sums[lane] += even * std::bit_cast<float>(pair << 16);
    sums[lane] += odd * std::bit_cast<float>(pair & 0xffff0000U);
  }
}

template <typename Output>
void store(const PackedLinearArgs& args, int64_t row, int64_t panel, const float* sums) {
  auto* y = reinterpret_cast<Output*>(args.y + row * args.y_row_bytes);
  const int64_t begin = panel * kPanelWidth;
  for (int64_t n = begin; n < args.out_features && n < begin + kPanelWidth; ++n) {
    y[n] = from_float<Output>(sums[n - begin] + (args.bias != nullptr ? args.bias[n] : 0.0F));
  }
}

template <int kRows>
void tile(const PackedLinearArgs& args, int64_t row, int64_t panel) {
  const char* weights = args.packed + panel * args.steps * kStepBytes;
  float sums[kRows][kPanelWidth] = {};
  for (int64_t step = 0; step < args.steps; ++step) {
    for (int r = 0; r < kRows; ++r) {
      const char* x = args.x + (row + r) * args.x_row_bytes;
      if (args.type == ElementType::kFloat32) {
        take_step(reinterpret_cast<const float*>(x) + step, weights + step * kStepBytes, sums[r]);
      } else {
        const auto* pair = reinterpret_cast<const BFloat16*>(x) + 2 * step;
        const float odd = 2 * step + 1 < args.in_features ? to_float(pair[1]) : 0.0F;
        take_step(to_float(pair[0]), odd, weights + step * kStepBytes, sums[r]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (args.y_type == ElementType::kFloat32) {
      store<float>(args, row + r, panel, sums[r]);
    } else {
      store<BFloat16>(args, row + r, panel, sums[r]);
    }
  }
}

}  // namespace

void packed_linear_block_portable(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                  int64_t panel_begin, int64_t panel_end) {
  for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
    int64_t row = row_begin;
    for (; row + 4 <= row_end; row += 4) {
      tile<4>(args, row, panel);
    }
    for (; row < row_end; ++row) {
      tile<1>(args, row, panel);
    }
  }
}

}  // namespace kvlab
