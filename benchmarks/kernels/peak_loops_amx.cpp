#include <immintrin.h>

#include "benchmarks/kernels/peak_loops.h"
#include "harness/kernels/amx_tiles.h"

namespace kvlab {

float tile_peak_loop(int64_t steps) {
  alignas(64) float sums[256] = {};
  amx::TileRegisters registers;
  registers.configure(amx::kTileRows, amx::kTileRows);
  amx::make_visible(sums);
  _tile_loadd(4, sums, amx::kTileRowBytes);
  _tile_loadd(5, sums, amx::kTileRowBytes);
  _tile_loadd(6, sums, amx::kTileRowBytes);
  _tile_loadd(7, sums, amx::kTileRowBytes);
  for (int64_t step = 0; step < steps; ++step) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, amx::kTileRowBytes);
  return sums[0];
}

}  // namespace kvlab
