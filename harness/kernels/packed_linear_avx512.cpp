#include <immintrin.h>

#include <cstring>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/packed_linear_kernels.h"
#include "harness/kernels/packed_linear_store_avx512.h"
#include "harness/kernels/scratch.h"

namespace kvlab {
namespace {

using avx512::first_lanes_16;

constexpr int kMaxRows = 12;  // 12 rows x 2 panels of accumulators leave 8 registers
// More rows than this share widened weights.
constexpr int64_t kSharingRows = 2 * kMaxRows;

template <bool kBf16>
inline __m512 fused(__m512 sum, __m512i x, __m512i w) {
  if constexpr (kBf16) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
  } else {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(w), sum);
  }
}

inline __m512i broadcast(const char* x) {
  int32_t bits = 0;
  std::memcpy(&bits, x, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

// Adds the bias and stores a tile.
template <int kRows, int kPanels>
[[gnu::always_inline]] inline void store(const PackedLinearArgs& args, int64_t row, int64_t panel,
                                         const __m512 (&sums)[kRows][kPanels]) {
#pragma GCC unroll 2
  for (int p = 0; p < kPanels; ++p) {
    const avx512::PanelStore panel_store(args, panel + p);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      panel_store.store(row + r, sums[r][p]);
    }
  }
}

template <bool kBf16, int kRows, int kPanels, bool kPrefetch>
void tile(const PackedLinearArgs& args, int64_t row, int64_t panel) {
  const int64_t panel_bytes = args.steps * kStepBytes;
  const char* weights = args.packed + panel * panel_bytes;
  // Rows in fours: one pointer and the stride reach them all without further registers.
  const int64_t stride = args.x_row_bytes;
  const char* x[3] = {args.x + row * stride, args.x + (row + 4) * stride,
                      args.x + (row + 8) * stride};
  const int64_t whole_steps = kBf16 ? args.in_features / 2 : args.steps;
  __m512 sums[kRows][kPanels];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      sums[r][p] = _mm512_setzero_ps();
    }
  }
  for (int64_t step = 0; step < whole_steps; ++step) {
    __m512i w[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      w[p] = _mm512_load_si512(weights + p * panel_bytes + step * kStepBytes);
      if constexpr (kPrefetch) {
        _mm_prefetch(weights + (p + kPanels) * panel_bytes + step * kStepBytes, _MM_HINT_T1);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512i value = broadcast(x[r / 4] + r % 4 * stride + step * 4);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = fused<kBf16>(sums[r][p], value, w[p]);
      }
    }
  }
  if (whole_steps < args.steps) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      uint16_t bits = 0;
      std::memcpy(&bits, x[r / 4] + r % 4 * stride + whole_steps * 4, sizeof(bits));
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        const __m512i w = _mm512_load_si512(weights + p * panel_bytes + whole_steps * kStepBytes);
        sums[r][p] = fused<kBf16>(sums[r][p], _mm512_set1_epi32(bits), w);
      }
    }
  }
  store<kRows, kPanels>(args, row, panel, sums);
}

// What the panel holds of an even (odd) input feature, as floats.
inline __m512 widen_even(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
inline __m512 widen_odd(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)));
}

// The same tile of bfloat16 weights as float32 products. x: the tile's first row, widened, 2 *
// steps floats to the next.
template <int kRows, int kPanels, bool kPrefetch>
void widened_tile(const PackedLinearArgs& args, const float* x, int64_t row, int64_t panel) {
  const int64_t steps = args.steps;
  const int64_t panel_bytes = steps * kStepBytes;
  const char* weights = args.packed + panel * panel_bytes;
  const int64_t stride = 2 * steps;
  const float* fours[3] = {x, x + 4 * stride, x + 8 * stride};
  __m512 sums[kRows][kPanels];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      sums[r][p] = _mm512_setzero_ps();
    }
  }
  for (int64_t step = 0; step < steps; ++step) {
    __m512i pairs[kPanels];
    __m512 w[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      pairs[p] = _mm512_load_si512(weights + p * panel_bytes + step * kStepBytes);
      if constexpr (kPrefetch) {
        _mm_prefetch(weights + (p + kPanels) * panel_bytes + step * kStepBytes, _MM_HINT_T1);
      }
      w[p] = widen_even(pairs[p]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(fours[r / 4][r % 4 * stride + 2 * step]);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = _mm512_fmadd_ps(value, w[p], sums[r][p]);
      }
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      w[p] = widen_odd(pairs[p]);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(fours[r / 4][r % 4 * stride + 2 * step + 1]);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = _mm512_fmadd_ps(value, w[p], sums[r][p]);
      }
    }
  }
  store<kRows, kPanels>(args, row, panel, sums);
}

// How a block's rows are multiplied.
enum class Products { kFloat32, kPairs, kWidened };

// Picks the tile for `rows` in [1, kRows]; wide: the block's rows from the tile's first on, where
// they are widened.
template <Products kProducts, int kRows, int kPanels, bool kPrefetch>
void tile_of_rows(const PackedLinearArgs& args, const float* wide, int64_t rows, int64_t row,
                  int64_t panel) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      tile_of_rows<kProducts, kRows - 1, kPanels, kPrefetch>(args, wide, rows, row, panel);
      return;
    }
  }
  if constexpr (kProducts == Products::kWidened) {
    widened_tile<kRows, kPanels, kPrefetch>(args, wide, row, panel);
  } else {
    tile<kProducts == Products::kPairs, kRows, kPanels, kPrefetch>(args, row, panel);
  }
}

template <Products kProducts>
void block(const PackedLinearArgs& args, const float* all_wide, int64_t row_begin, int64_t row_end,
           int64_t panel_begin, int64_t panel_end) {
  const int64_t rows = row_end - row_begin;
  const int64_t num_tiles = (rows + kMaxRows - 1) / kMaxRows;
  for (int64_t panel = panel_begin; panel < panel_end; panel += 2) {
    for (int64_t t = 0; t < num_tiles; ++t) {
      // Tiles of nearly equal height: 20 rows are 10 + 10, not 12 + 8.
      const int64_t first = rows * t / num_tiles;
      const int64_t count = rows * (t + 1) / num_tiles - first;
      const int64_t row = row_begin + first;
      const float* wide =
          kProducts == Products::kWidened ? all_wide + first * 2 * args.steps : nullptr;
      if (panel + 1 == panel_end) {
        tile_of_rows<kProducts, kMaxRows, 1, false>(args, wide, count, row, panel);
      } else if (t == 0 && panel + 4 <= panel_end) {
        tile_of_rows<kProducts, kMaxRows, 2, true>(args, wide, count, row, panel);
      } else {
        tile_of_rows<kProducts, kMaxRows, 2, false>(args, wide, count, row, panel);
      }
    }
  }
}

// The block's rows as floats, 2 * steps each, zero beyond an odd end.
void widen_rows(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end, float* wide) {
  const int64_t stride = 2 * args.steps;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const auto* x = reinterpret_cast<const BFloat16*>(args.x + row * args.x_row_bytes);
    float* out = wide + (row - row_begin) * stride;
    for (int64_t k = 0; k < stride; k += 16) {
      const __m512 values = avx512::load_floats(x + k, first_lanes_16(args.in_features - k));
      _mm512_mask_storeu_ps(out + k, first_lanes_16(stride - k), values);
    }
  }
}

// A panel of float32 weights from one of pairs.
void widen_panel(const char* pairs, int64_t steps, float* wide) {
  for (int64_t step = 0; step < steps; ++step) {
    const __m512i both = _mm512_load_si512(pairs + step * kStepBytes);
    _mm512_store_ps(wide + 2 * step * kPanelWidth, widen_even(both));
    _mm512_store_ps(wide + (2 * step + 1) * kPanelWidth, widen_odd(both));
    _mm_prefetch(pairs + (step + 2 * steps) * kStepBytes, _MM_HINT_T1);
  }
}

// bfloat16 as float32 products. Few rows widen the weights in registers; where many rows share
// them, a pair of panels is widened once and multiplied as float32 weights are: the same bits.
void block_widened(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                   int64_t panel_begin, int64_t panel_end) {
  const int64_t rows = row_end - row_begin;
  const int64_t stride = 2 * args.steps;
  const int64_t row_floats = (rows * stride + 15) / 16 * 16;
  const bool share = rows > kSharingRows;
  auto* wide = static_cast<float*>(
      thread_scratch(1, (row_floats + (share ? 2 * stride * kPanelWidth : 0)) * sizeof(float)));
  widen_rows(args, row_begin, row_end, wide);
  if (!share) {
    block<Products::kWidened>(args, wide, row_begin, row_end, panel_begin, panel_end);
    return;
  }
  PackedLinearArgs two = args;
  two.type = ElementType::kFloat32;
  two.in_features = two.steps = stride;
  two.x = reinterpret_cast<const char*>(wide);
  two.x_row_bytes = stride * sizeof(float);
  two.packed = reinterpret_cast<const char*>(wide + row_floats);
  const int64_t panel_bytes = kPanelWidth * element_size(args.y_type);
  two.y = args.y + row_begin * args.y_row_bytes + panel_begin * panel_bytes;
  for (int64_t panel = panel_begin; panel < panel_end; panel += 2) {
    const int64_t count = panel + 1 == panel_end ? 1 : 2;
    for (int64_t p = 0; p < count; ++p) {
      widen_panel(args.packed + (panel + p) * args.steps * kStepBytes, args.steps,
                  wide + row_floats + p * stride * kPanelWidth);
    }
    two.bias = args.bias != nullptr ? args.bias + panel * kPanelWidth : nullptr;
    two.out_features = args.out_features - panel * kPanelWidth;
    block<Products::kFloat32>(two, nullptr, 0, rows, 0, count);
    two.y += count * panel_bytes;
  }
}

}  // namespace

void packed_linear_block_avx512(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                int64_t panel_begin, int64_t panel_end) {
  if (args.type == ElementType::kBFloat16) {
    block<Products::kPairs>(args, nullptr, row_begin, row_end, panel_begin, panel_end);
  } else {
    block<Products::kFloat32>(args, nullptr, row_begin, row_end, panel_begin, panel_end);
  }
}

void packed_linear_block_avx512_widen(const PackedLinearArgs& args, int64_t row_begin,
                                      int64_t row_end, int64_t panel_begin, int64_t panel_end) {
  if (args.type == ElementType::kBFloat16) {
    block_widened(args, row_begin, row_end, panel_begin, panel_end);
  } else {
    block<Products::kFloat32>(args, nullptr, row_begin, row_end, panel_begin, panel_end);
  }
}

}  // namespace kvlab
