#include <immintrin.h>

#include "harness/kernels/amx_tiles.h"
#include "harness/kernels/packed_linear_kernels.h"
#include "harness/kernels/packed_linear_store_avx512.h"

namespace kvlab {
namespace {

using amx::kTileRowBytes;
using amx::kTileRows;
using amx::kTileSteps;

// Sixteen steps of a panel lie in memory as a right side does.
constexpr int64_t kTileBytes = kTileSteps * kStepBytes;
static_assert(kPanelWidth == 16 && kStepBytes == kTileRowBytes);

// Adds the bias and stores a tile of sums.
void store(const PackedLinearArgs& args, const float* sums, int64_t row, int64_t rows,
           int64_t panel) {
  const avx512::PanelStore panel_store(args, panel);
  for (int64_t r = 0; r < rows; ++r) {
    panel_store.store(row + r, _mm512_load_ps(sums + r * kPanelWidth));
  }
}

// Weights to bring near while others are multiplied.
struct Ahead {
  const char* from = nullptr;
  int64_t lines_per_tile = 0;
};

// One or two tiles of rows, the first `first_rows` high, by one or two panels.
template <bool kTwoRows, bool kTwoPanels>
void multiply(const PackedLinearArgs& args, int64_t row, int64_t first_rows, int64_t second_rows,
              int64_t panel, const Ahead& ahead) {
  const int64_t panel_bytes = args.steps * kStepBytes;
  const char* weights = args.packed + panel * panel_bytes;
  const char* x = args.x + row * args.x_row_bytes;
  const int64_t stride = args.x_row_bytes;
  const char* next = ahead.from;
  amx::make_visible(x);
  _tile_zero(0);
  if constexpr (kTwoPanels) {
    _tile_zero(1);
  }
  if constexpr (kTwoRows) {
    _tile_zero(2);
    if constexpr (kTwoPanels) {
      _tile_zero(3);
    }
  }
  for (int64_t offset = 0; offset < panel_bytes; offset += kTileBytes) {
    const char* left = x + offset / kTileSteps;
    const char* right = weights + offset;
    for (int64_t line = 0; line < ahead.lines_per_tile; ++line) {
      _mm_prefetch(next, _MM_HINT_T1);
      next += kStepBytes;
    }
    _tile_loadd(6, right, kTileRowBytes);
    _tile_loadd(4, left, stride);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoPanels) {
      _tile_loadd(7, right + panel_bytes, kTileRowBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoRows) {
      _tile_loadd(5, left + kTileRows * stride, stride);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kTwoPanels) {
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  alignas(64) float sums[kTileRows * kPanelWidth];
  _tile_stored(0, sums, kTileRowBytes);
  store(args, sums, row, first_rows, panel);
  if constexpr (kTwoPanels) {
    _tile_stored(1, sums, kTileRowBytes);
    store(args, sums, row, first_rows, panel + 1);
  }
  if constexpr (kTwoRows) {
    _tile_stored(2, sums, kTileRowBytes);
    store(args, sums, row + kTileRows, second_rows, panel);
    if constexpr (kTwoPanels) {
      _tile_stored(3, sums, kTileRowBytes);
      store(args, sums, row + kTileRows, second_rows, panel + 1);
    }
  }
}

template <bool kTwoPanels>
void multiply_rows(const PackedLinearArgs& args, int64_t row, int64_t rows, int64_t panel,
                   const Ahead& ahead, amx::TileRegisters& registers) {
  if (rows > kTileRows) {
    registers.configure(kTileRows, rows - kTileRows);
    multiply<true, kTwoPanels>(args, row, kTileRows, rows - kTileRows, panel, ahead);
  } else {
    registers.configure(rows, rows);
    multiply<false, kTwoPanels>(args, row, rows, 0, panel, ahead);
  }
}

}  // namespace

void packed_linear_block_amx(const PackedLinearArgs& args, int64_t row_begin, int64_t row_end,
                             int64_t panel_begin, int64_t panel_end) {
  // Whole tiles only; which loops run depends on the weights alone, so that a row's bits do too.
  if (args.type != ElementType::kBFloat16 || args.in_features % kTileDepth != 0) {
    packed_linear_block_avx512_widen(args, row_begin, row_end, panel_begin, panel_end);
    return;
  }
  constexpr int64_t kRows = 2 * kTileRows;
  const int64_t panel_bytes = args.steps * kStepBytes;
  // The next two panels come in equal parts, one beside each tile of rows.
  const int64_t row_tiles = (row_end - row_begin + kRows - 1) / kRows;
  const int64_t lines_per_tile = (2 * kTileSteps + row_tiles - 1) / row_tiles;
  const int64_t part_bytes = lines_per_tile * kStepBytes * (panel_bytes / kTileBytes);
  amx::TileRegisters registers;
  for (int64_t panel = panel_begin; panel < panel_end; panel += 2) {
    Ahead ahead;
    if (panel + 4 <= panel_end) {
      ahead = {args.packed + (panel + 2) * panel_bytes, lines_per_tile};
    }
    for (int64_t row = row_begin; row < row_end; row += kRows) {
      const int64_t rows = row_end - row < kRows ? row_end - row : kRows;
      if (panel + 1 == panel_end) {
        multiply_rows<false>(args, row, rows, panel, ahead, registers);
      } else {
        multiply_rows<true>(args, row, rows, panel, ahead, registers);
      }
      if (ahead.from != nullptr) {
        ahead.from += part_bytes;
      }
    }
  }
}

}  // namespace kvlab
