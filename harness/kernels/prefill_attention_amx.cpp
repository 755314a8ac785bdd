#include <immintrin.h>

#include <cstring>

#include "harness/kernels/amx_tiles.h"
#include "harness/kernels/avx512_math.h"
#include "harness/kernels/key_panels_avx512.h"
#include "harness/kernels/prefill_attention_kernels.h"
#include "harness/kernels/prefill_lanes_avx512.h"

namespace kvlab {
namespace {

using amx::kTileRows;
using amx::kTileSteps;

constexpr int64_t kTileLanes = 16;
static_assert(kKeyBlock % kTileDepth == 0 && kKeyBlock % (2 * kTileRows) == 0);

// Keys and dimensions are the left sides, queries and weights the right ones: their pairs lie in
// memory as tiles want them.
template <int kPanels>
class Block final : public avx512::QueryLanes<Block<kPanels>, BFloat16, BFloat16, kPanels> {
  using Base = avx512::QueryLanes<Block, BFloat16, BFloat16, kPanels>;
  friend Base;
  using Base::args_;
  using Base::block_;
  using Base::head_dim_;
  using Base::kLanes;
  using Base::largest_;
  using Base::output_;
  using Base::queries_;
  using Base::scores_;
  using Base::steps_;
  using Base::weights_;
  using typename Base::Lanes;

 public:
  using Base::Base;

 private:
  static constexpr int64_t kStride = kLanes * 4;  // bytes from step to step

  Lanes score_keys(int64_t key, int64_t count) {
    const bool partial = key + kKeyBlock > args_.kv_len;
    const char* keys = reinterpret_cast<const char*>(
        partial ? block_.last_keys : row_of<BFloat16>(args_.keys, block_.kv_head, key));
    const int64_t row_bytes = (partial ? head_dim_ : args_.keys.row_stride) * 2;
    amx::make_visible(queries_);
    for (int64_t i = 0; i < count; i += 2 * kTileRows) {
      multiply_tiles<false>(keys + i * row_bytes, row_bytes, queries_, steps_,
                            scores_ + i * kLanes);
    }
    Lanes largest = largest_;
    for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        largest.panel[p] =
            _mm512_max_ps(largest.panel[p], _mm512_load_ps(scores_ + i * kLanes + 16 * p));
      }
    }
    return largest;
  }

  void weigh_values(int64_t key, int64_t count) {
    // Whole tiles: what no query sees weighs nothing.
    const int64_t filled = (count + 1) / 2;
    const int64_t steps = (count + kTileDepth - 1) / kTileDepth * kTileSteps;
    std::memset(weights_ + filled * kLanes, 0, (steps - filled) * kStride);
    amx::make_visible(weights_);
    amx::make_visible(output_);
    constexpr int64_t kRowBytes = kKeyBlock * 2;  // a dimension of the block's values
    const char* values = reinterpret_cast<const char*>(block_.value_tiles + key * head_dim_);
    for (int64_t d = 0; d < head_dim_; d += 2 * kTileRows) {
      multiply_tiles<true>(values + d * kRowBytes, kRowBytes, weights_, steps,
                           output_ + d * kLanes);
    }
  }

  // 32 rows of the left side, `steps` pairs each, by all panels of `right` [steps, kLanes]; kAdd:
  // added to what `sums` [32, kLanes] holds.
  template <bool kAdd>
  static void multiply_tiles(const char* left, int64_t left_row_bytes, const float* right,
                             int64_t steps, float* sums) {
    float* second_sums = sums + kTileRows * kLanes;
    if constexpr (kAdd) {
      _tile_loadd(0, sums, kStride);
      _tile_loadd(2, second_sums, kStride);
    } else {
      _tile_zero(0);
      _tile_zero(2);
    }
    if constexpr (kPanels == 2 && kAdd) {
      _tile_loadd(1, sums + kTileLanes, kStride);
      _tile_loadd(3, second_sums + kTileLanes, kStride);
    } else if constexpr (kPanels == 2) {
      _tile_zero(1);
      _tile_zero(3);
    }
    for (int64_t step = 0; step < steps; step += kTileSteps) {
      const float* panels = right + step * kLanes;
      _tile_loadd(6, panels, kStride);
      _tile_loadd(4, left + step * 4, left_row_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, left + kTileRows * left_row_bytes + step * 4, left_row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kPanels == 2) {
        _tile_loadd(7, panels + kTileLanes, kStride);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, sums, kStride);
    _tile_stored(2, second_sums, kStride);
    if constexpr (kPanels == 2) {
      _tile_stored(1, sums + kTileLanes, kStride);
      _tile_stored(3, second_sums + kTileLanes, kStride);
    }
  }
};

// Sixteen dimensions of two keys side by side.
inline __m512i pairs_of(const BFloat16* even, const BFloat16* odd) {
  const auto load = [](const BFloat16* row) {
    return row == nullptr
               ? _mm512_setzero_si512()
               : _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
  };
  return _mm512_or_si512(load(even), _mm512_slli_epi32(load(odd), 16));
}

}  // namespace

void prefill_block_amx(const PrefillBlock& block) {
  amx::TileRegisters registers;
  registers.configure(kTileRows, kTileRows);
  if (block.q_count > kTileLanes) {
    Block<2>(block).run();
  } else {
    Block<1>(block).run();
  }
}

void pack_value_tiles_amx(const PrefillAttentionArgs& args, int64_t kv_head, int64_t begin,
                          int64_t end, BFloat16* tiles) {
  for (int64_t key = begin; key < end; key += 2 * kTileSteps) {
    BFloat16* place = tiles + key / kKeyBlock * kKeyBlock * args.head_dim + key % kKeyBlock;
    for (int64_t d = 0; d < args.head_dim; d += kTileRows) {
      const auto row = [&](int64_t at) {
        return at < args.kv_len ? row_of<BFloat16>(args.values, kv_head, at) + d : nullptr;
      };
      __m512i pairs[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        pairs[i] = pairs_of(row(key + 2 * i), row(key + 2 * i + 1));
      }
      avx512::transpose_16x16(pairs);
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        _mm512_store_si512(place + (d + i) * kKeyBlock, pairs[i]);
      }
    }
  }
}

}  // namespace kvlab
