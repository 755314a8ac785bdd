#include <immintrin.h>

#include <cstring>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/packed_linear_kernels.h"

namespace kvlab {
namespace {

using avx512::first_lanes_16;

constexpr int kMaxRows = 12;  // 12 rows x 2 panels of accumulators leave 8 registers

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
#pragma GCC unroll 2
  for (int p = 0; p < kPanels; ++p) {
    const int64_t column = (panel + p) * kPanelWidth;
    const __mmask16 mask = first_lanes_16(args.out_features - column);
    const __m512 bias =
        args.bias != nullptr ? _mm512_loadu_ps(args.bias + column) : _mm512_setzero_ps();
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = args.bias != nullptr ? _mm512_add_ps(sums[r][p], bias) : sums[r][p];
      char* y = args.y + (row + r) * args.y_row_bytes;
      if (args.y_type == ElementType::kFloat32) {
        avx512::store_floats(reinterpret_cast<float*>(y) + column, mask, value);
      } else {
        avx512::store_floats(reinterpret_cast<BFloat16*>(y) + column, mask, value);
      }
    }
  }
}

// Picks the tile for `rows` in [1, kRows].
template <bool kBf16, int kRows, int kPanels, bool kPrefetch>
void tile_of_rows(const PackedLinearArgs& args, int64_t rows, int64_t row, int64_t panel) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      tile_of_rows<kBf16, kRows - 1, kPanels, kPrefetch>(args, rows, row, panel);
      return;
    }
  }
  tile<kBf16, kRows, kPanels, kPrefetch>(args, row, panel);
}

template <bool kBf16>
void block(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end, int64_t panel_begin,
           int64_t panel_end) {
  const int64_t rows = row_end - row_begin;
  const int64_t num_tiles = (rows + kMaxRows - 1) / kMaxRows;
  for (int64_t panel = panel_begin; panel < panel_end; panel += 2) {
    for (int64_t t = 0; t < num_tiles; ++t) {
      // Tiles of nearly equal height: 20 rows are 10 + 10, not 12 + 8.
      const int64_t begin = row_begin + rows * t / num_tiles;
      const int64_t end = row_begin + rows * (t + 1) / num_tiles;
      if (panel + 1 == panel_end) {
        tile_of_rows<kBf16, kMaxRows, 1, false>(args, end - begin, begin, panel);
      } else if (t == 0 && panel + 4 <= panel_end) {
        tile_of_rows<kBf16, kMaxRows, 2, true>(args, end - begin, begin, panel);
      } else {
        tile_of_rows<kBf16, kMaxRows, 2, false>(args, end - begin, begin, panel);
      }
    }
  }
}

}  // namespace

void packed_linear_block_avx512(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                                int64_t panel_begin, int64_t panel_end) {
  if (args.type == ElementType::kBFloat16) {
    block<true>(args, row_begin, row_end, panel_begin, panel_end);
  } else {
    block<false>(args, row_begin, row_end, panel_begin, panel_end);
  }
}

}  // namespace kvlab
