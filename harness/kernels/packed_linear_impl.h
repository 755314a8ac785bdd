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

// A tile among the `count` that share a panel and, each its part, ask for the next panels' weights.
struct TileOfPanel {
  int64_t index = 0;
  int64_t count = 1;
};

// x: the tile's first row as floats, `stride` to the next.
template <bool kPairs, int kRows, int kPanels>
void multiply_tile(const PackedLinearArgs& args, const float* x, int64_t stride, int64_t row,
                   int64_t panel, TileOfPanel tile) {
  const int64_t panel_bytes = args.steps * kStepBytes;
  const char* weights = args.packed + panel * panel_bytes;
  const int64_t ahead_bytes = kStepBytes / tile.count;
  const char* ahead = weights + kPanels * panel_bytes + tile.index * args.steps * ahead_bytes;
  PanelSums<kRows, kPanels> sums = {};
  const IntVec upper_half_constant = IntVec{} + kUpperHalf;
  const IntVec* upper_half = &upper_half_constant;
  for (int64_t step = 0; step < args.steps; ++step, weights += kStepBytes) {
    for (int p = 0; p < kPanels; ++p) {
      bring_near(ahead + p * panel_bytes, kStepBytes);
    }
    ahead += ahead_bytes;
    Vec w[kPanels][kVecsOf16];
    if constexpr (kPairs) {
      // Read from memory each time, for all that the compiler knows: in a register the constant
      // would push out a sum.
      asm("" : "+r"(upper_half));
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
          w[p][v] = widen_odd(weights + p * panel_bytes + v * kVecBytes, *upper_half);
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

// x: the block's rows as floats.
template <bool kPairs>
void multiply_block(const PackedLinearArgs& args, const float* x, int64_t stride, int64_t row_begin,
                    int64_t row_end, int64_t panel_begin, int64_t panel_end) {
  // So few rows leave registers for two panels, whose sums hide each other's delay.
  constexpr int kTwoPanelRows = kVecTileRows / 3;
  const int64_t rows = row_end - row_begin;
  int64_t panel = panel_begin;
  if (rows <= kTwoPanelRows) {
    for (; panel + 2 <= panel_end; panel += 2) {
      with_tile_rows<kTwoPanelRows>(rows, [&]<int kRows>() {
        multiply_tile<kPairs, kRows, 2>(args, x, stride, row_begin, panel, {});
      });
    }
  }
  // The rows' tiles take a panel one after the other: it comes from memory once.
  for (; panel < panel_end; ++panel) {
    TileOfPanel tile = {.index = 0, .count = num_vec_tiles(rows)};
    for_each_vec_tile(rows, [&]<int kRows>(int64_t first) {
      multiply_tile<kPairs, kRows, 1>(args, x + first * stride, stride, row_begin + first, panel,
                                      tile);
      ++tile.index;
    });
  }
}

void packed_linear_block(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                         int64_t panel_begin, int64_t panel_end) {
  if (args.type == ElementType::kFloat32) {
    multiply_block<false>(args,
                          reinterpret_cast<const float*>(args.x + row_begin * args.x_row_bytes),
                          args.x_row_bytes / static_cast<int64_t>(sizeof(float)), row_begin,
                          row_end, panel_begin, panel_end);
    return;
  }
  // Rows as floats, zero beyond an odd end.
  const int64_t stride = 2 * args.steps;
  auto* scratch = static_cast<float*>(
      thread_scratch(1, (row_end - row_begin) * stride * static_cast<int64_t>(sizeof(float))));
  for (int64_t row = row_begin; row < row_end; ++row) {
    float* out = scratch + (row - row_begin) * stride;
    widen(reinterpret_cast<const BFloat16*>(args.x + row * args.x_row_bytes), args.in_features,
          out);
    if (args.in_features < stride) {
      out[args.in_features] = 0;
    }
  }
  multiply_block<true>(args, scratch, stride, row_begin, row_end, panel_begin, panel_end);
}

}  // namespace
}  // namespace kvlab
