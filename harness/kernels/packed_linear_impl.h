// The inner loops of PackedLinear on float32 products, compiled once for any CPU and once for AVX2.
#pragma once

#include "harness/kernels/packed_linear_kernels.h"
#include "harness/kernels/scratch.h"
#include "harness/kernels/vec.h"
#include "harness/kernels/widen.h"

namespace kvlab {
namespace {

template <int kRows, int kPanels>
using PanelSums = Vec[kRows][kPanels][kVecsOf16];

template <int kRows, int kPanels>
[[gnu::always_inline]] inline void add_products(const float* x, int64_t stride,
                                                const Vec (&w)[kPanels][kVecsOf16],
                                                PanelSums<kRows, kPanels>& sums) {
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
    const Vec value = vec_set(x[r * stride]);
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVecsOf16; ++v) {
        sums[r][p][v] = vec_fma(value, w[p][v], sums[r][p][v]);
      }
    }
  }
}

// What a panel holds of the even (odd) one of two input features, as floats.
inline Vec widen_even(const char* pairs) {
  IntVec both;
  std::memcpy(&both, pairs, sizeof(both));
  return reinterpret_cast<Vec>(both << 16);
}
inline Vec widen_odd(const char* pairs, IntVec upper_half) {
  IntVec both;
  std::memcpy(&both, pairs, sizeof(both));
  return reinterpret_cast<Vec>(both & upper_half);
}
constexpr int32_t kUpperHalf = -65536;

inline void store_panel(const PackedLinearArgs& args, int64_t row, int64_t panel,
                        const Vec (&sums)[kVecsOf16]) {
  const int64_t begin = panel * kPanelWidth;
  const int64_t count =
      args.out_features - begin < kPanelWidth ? args.out_features - begin : kPanelWidth;
  float values[kPanelWidth];
  for (int v = 0; v < kVecsOf16; ++v) {
    const Vec bias = args.bias != nullptr ? vec_load(args.bias + begin + v * kVecFloats) : Vec{};
    vec_store(values + v * kVecFloats, args.bias != nullptr ? sums[v] + bias : sums[v]);
  }
  char* y = args.y + row * args.y_row_bytes;
  if (args.y_type == ElementType::kFloat32) {
    std::memcpy(reinterpret_cast<float*>(y) + begin, values, count * sizeof(float));
    return;
  }
  auto* out = reinterpret_cast<BFloat16*>(y) + begin;
  BFloat16 narrow[kPanelWidth];
#pragma omp simd
  for (int i = 0; i < kPanelWidth; ++i) {
    narrow[i] = to_bfloat16(values[i]);
  }
  std::memcpy(out, narrow, count * sizeof(BFloat16));
}

// x: the tile's first row as floats, `stride` to the next.
template <bool kPairs, int kRows, int kPanels>
void multiply_tile(const PackedLinearArgs& args, const float* x, int64_t stride, int64_t row,
                   int64_t panel) {
  const int64_t panel_bytes = args.steps * kStepBytes;
  const char* weights = args.packed + panel * panel_bytes;
  PanelSums<kRows, kPanels> sums = {};
  IntVec upper_half = IntVec{} + kUpperHalf;
  for (int64_t step = 0; step < args.steps; ++step, weights += kStepBytes) {
    Vec w[kPanels][kVecsOf16];
    if constexpr (kPairs) {
      // Stays in memory: in a register it would push out a sum.
      asm("" : "+m"(upper_half));
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
        for (int v = 0; v < kVecsOf16; ++v) {
          w[p][v] = widen_even(weights + p * panel_bytes + v * kVecBytes);
        }
      }
      add_products<kRows, kPanels>(x + 2 * step, stride, w, sums);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
        for (int v = 0; v < kVecsOf16; ++v) {
          w[p][v] = widen_odd(weights + p * panel_bytes + v * kVecBytes, upper_half);
        }
      }
      add_products<kRows, kPanels>(x + 2 * step + 1, stride, w, sums);
    } else {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
        for (int v = 0; v < kVecsOf16; ++v) {
          w[p][v] =
              vec_load(reinterpret_cast<const float*>(weights + p * panel_bytes) + v * kVecFloats);
        }
      }
      add_products<kRows, kPanels>(x + step, stride, w, sums);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) {
      store_panel(args, row + r, panel + p, sums[r][p]);
    }
  }
}

// Input features that more rows than one tile take at a time: their weights, widened, and a tile's
// inputs stay in the first-level cache.
constexpr int64_t kSharedFeatures = 192;

// Sums of a few features for many rows: a panel of bfloat16 is widened once for all of them.
class SharedPanel final {
 public:
  // scratch: scratch_floats(rows) of them.
  SharedPanel(int64_t rows, float* scratch)
      : rows_(rows), sums_(scratch), wide_(scratch + rows * kPanelWidth) {}

  static constexpr int64_t scratch_floats(int64_t rows) {
    return (rows + kSharedFeatures) * kPanelWidth;
  }

  // x: the rows as floats, from the first feature on, `stride` to the next row.
  void multiply(const PackedLinearArgs& args, const float* x, int64_t stride, int64_t row_begin,
                int64_t panel) {
    const char* weights = args.packed + panel * args.steps * kStepBytes;
    const bool pairs = args.type == ElementType::kBFloat16;
    const int64_t features = pairs ? 2 * args.steps : args.steps;
    std::memset(sums_, 0, rows_ * kPanelWidth * sizeof(float));
    const int64_t features_per_step = pairs ? 2 : 1;
    for (int64_t k = 0; k < features; k += kSharedFeatures) {
      const int64_t count = features - k < kSharedFeatures ? features - k : kSharedFeatures;
      const int64_t steps = count / features_per_step;
      const char* these = weights + k / features_per_step * kStepBytes;
      if (pairs) {
        widen_features(these, steps);
      }
      // The next weights, maybe the next panel's, come near meanwhile.
      add(x + k, stride, pairs ? wide_ : reinterpret_cast<const float*>(these), count,
          these + steps * kStepBytes, steps * kStepBytes);
    }
    for (int64_t r = 0; r < rows_; ++r) {
      Vec sums[kVecsOf16];
      for (int v = 0; v < kVecsOf16; ++v) {
        sums[v] = vec_load(sums_ + r * kPanelWidth + v * kVecFloats);
      }
      store_panel(args, row_begin + r, panel, sums);
    }
  }

 private:
  void widen_features(const char* pairs, int64_t steps) {
    float* even = wide_;
    for (int64_t step = 0; step < steps; ++step, pairs += kStepBytes, even += 2 * kPanelWidth) {
      for (int v = 0; v < kVecsOf16; ++v) {
        vec_store(even + v * kVecFloats, widen_even(pairs + v * kVecBytes));
        vec_store(even + kPanelWidth + v * kVecFloats,
                  widen_odd(pairs + v * kVecBytes, IntVec{} + kUpperHalf));
      }
    }
  }

  void add(const float* x, int64_t stride, const float* weights, int64_t count, const char* next,
           int64_t next_bytes) {
    const int64_t bytes_per_row = (next_bytes / rows_ + 63) / 64 * 64;
    for_each_vec_tile(rows_, [&]<int kRows>(int64_t first) {
      bring_near(next + first * bytes_per_row, kRows * bytes_per_row);
      float* place = sums_ + first * kPanelWidth;
      Vec sums[kRows][kVecsOf16];
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVecsOf16; ++v) {
          sums[r][v] = vec_load(place + r * kPanelWidth + v * kVecFloats);
        }
      }
      add_tile_products<kRows>(x + first * stride, stride, weights, count, sums);
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVecsOf16; ++v) {
          vec_store(place + r * kPanelWidth + v * kVecFloats, sums[r][v]);
        }
      }
    });
  }

  const int64_t rows_;
  float* sums_;  // [rows, kPanelWidth]
  float* wide_;  // [kSharedFeatures, kPanelWidth]
};

// x: the block's rows as floats. shared_scratch: SharedPanel::scratch_floats(rows).
template <bool kPairs>
void multiply_block(const PackedLinearArgs& args, const float* x, int64_t stride,
                    float* shared_scratch, int64_t row_begin, int64_t row_end, int64_t panel_begin,
                    int64_t panel_end) {
  // So few rows leave registers for two panels, whose sums hide each other's delay.
  constexpr int kTwoPanelRows = kVecTileRows / 2;
  const int64_t rows = row_end - row_begin;
  int64_t panel = panel_begin;
  if (rows > kVecTileRows) {
    SharedPanel shared(rows, shared_scratch);
    for (; panel < panel_end; ++panel) {
      shared.multiply(args, x, stride, row_begin, panel);
    }
    return;
  }
  if (rows <= kTwoPanelRows) {
    for (; panel + 2 <= panel_end; panel += 2) {
      with_tile_rows<kTwoPanelRows>(rows, [&]<int kRows>() {
        multiply_tile<kPairs, kRows, 2>(args, x, stride, row_begin, panel);
      });
    }
  }
  for (; panel < panel_end; ++panel) {
    with_tile_rows<kVecTileRows>(rows, [&]<int kRows>() {
      multiply_tile<kPairs, kRows, 1>(args, x, stride, row_begin, panel);
    });
  }
}

void packed_linear_block(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                         int64_t panel_begin, int64_t panel_end) {
  const int64_t rows = row_end - row_begin;
  const bool pairs = args.type == ElementType::kBFloat16;
  const int64_t stride = 2 * args.steps;
  const int64_t wide_floats = pairs ? rows * stride : 0;
  auto* scratch = static_cast<float*>(
      thread_scratch(1, (wide_floats + SharedPanel::scratch_floats(rows)) * sizeof(float)));
  float* shared = scratch + wide_floats;
  if (!pairs) {
    multiply_block<false>(args,
                          reinterpret_cast<const float*>(args.x + row_begin * args.x_row_bytes),
                          args.x_row_bytes / static_cast<int64_t>(sizeof(float)), shared, row_begin,
                          row_end, panel_begin, panel_end);
    return;
  }
  // Rows as floats, zero beyond an odd end.
  for (int64_t row = row_begin; row < row_end; ++row) {
    float* out = scratch + (row - row_begin) * stride;
    widen(reinterpret_cast<const BFloat16*>(args.x + row * args.x_row_bytes), args.in_features,
          out);
    if (args.in_features < stride) {
      out[args.in_features] = 0;
    }
  }
  multiply_block<true>(args, scratch, stride, shared, row_begin, row_end, panel_begin, panel_end);
}

}  // namespace
}  // namespace kvlab
