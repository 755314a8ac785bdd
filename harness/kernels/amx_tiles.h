// Tile registers of the AMX translation units; include nowhere else.
//
// A product takes tiles of 16 rows x 32 bfloat16 on the left and of 16 pairs x 16 columns on the
// right (64 bytes a row: two bfloat16 for each column), and adds 16 x 16 floats.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "harness/kernels/cpu_level.h"

namespace kvlab::amx {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileRowBytes = 64;
constexpr int64_t kTileSteps = kTileDepth / 2;  // pairs of a row

// What was stored at `data` is in memory before the next tile load: GCC 12's loads do not tell the
// compiler what they read. For the same reason nothing they read may be overwritten before a tile
// store (which the compiler does see) or another call of this.
static inline void make_visible(const void* data) { asm volatile("" : : "r"(data) : "memory"); }

// This thread's tile registers, from construction to destruction, one object at a time on a thread;
// configuring them again leaves zeros. Registers 0 to 3 hold sums (0 and 1 of the first rows, 2 and
// 3 of the second), 4 and 5 rows of the left side, 6 and 7 of the right one.
class TileRegisters final {
 public:
  TileRegisters() = default;
  ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  // Rows in 1 to 16 of the first and second left side; nothing if they are so already.
  void configure(int64_t first_rows, int64_t second_rows) {
    if (first_rows == first_rows_ && second_rows == second_rows_) {
      return;
    }
    first_rows_ = first_rows;
    second_rows_ = second_rows;
    Config config;
    for (int tile = 0; tile < 8; ++tile) {
      config.row_bytes[tile] = kTileRowBytes;
      config.rows[tile] = kTileRows;
    }
    config.rows[0] = config.rows[1] = config.rows[4] = static_cast<uint8_t>(first_rows);
    config.rows[2] = config.rows[3] = config.rows[5] = static_cast<uint8_t>(second_rows);
    make_visible(&config);
    _tile_loadconfig(&config);
  }

 private:
  // The layout that LDTILECFG reads (Intel's Architectures Software Developer's Manual, volume 2).
  struct alignas(64) Config {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };
  static_assert(sizeof(Config) == 64);

  int64_t first_rows_ = 0;
  int64_t second_rows_ = 0;
};

// One left side, `row_bytes` a row and as high as configured, by two panels of 16 columns side by
// side in memory: sums[r][column], `sums_bytes` from row to row.
static inline void multiply_two_panels(const char* rows, int64_t row_stride_bytes,
                                       int64_t row_bytes, const char* panels, float* sums,
                                       int64_t sums_bytes) {
  _tile_zero(0);
  _tile_zero(1);
  for (int64_t offset = 0; offset < row_bytes; offset += kTileRowBytes) {
    const char* right = panels + offset * kTileRows;
    _tile_loadd(4, rows + offset, row_stride_bytes);
    _tile_loadd(6, right, kTileRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, right + 16 * row_bytes, kTileRowBytes);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, sums, sums_bytes);
  _tile_stored(1, sums + 16, sums_bytes);
}

}  // namespace kvlab::amx
