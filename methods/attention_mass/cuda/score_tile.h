// 64 query rows times 64 keys: the scores of one tile, queries and keys going through shared memory
// in slices of 128 bytes. float32 by fused multiply-adds, bfloat16 on tensor cores with float32
// accumulators.
#pragma once

#include "harness/kernels/cuda/device_math.h"

namespace kvlab {

constexpr int kTileRows = 64;
constexpr int kTileKeys = 64;
constexpr int kTileThreads = 128;
constexpr int kScoreStride = kTileKeys + 4;
constexpr int kTileScoreBytes = kTileRows * kScoreStride * 4;

template <class Element>
struct TileSlice {
  static constexpr int kColumns = 128 / static_cast<int>(sizeof(Element));
  static constexpr int kVectors = 128 / kVectorBytes;
  static constexpr int kStride = kColumns + kVectorElements<Element>;
  static constexpr int kBytes = kTileRows * kStride * static_cast<int>(sizeof(Element));
};

// 16 rows of a tile on a warp's tensor cores; one specialisation a block (tensor_strip.cuh,
// tests/harness/kernels/cuda/host_block.h) with
//   clear();
//   multiply_add(rows, keys, stride): adds rows [16, 16] times keys [64, 16] transposed
//   store(out, stride): [16, 64]
template <class Block>
struct TensorStrip;

template <class Block, class Element>
struct TileProduct;

template <class Block>
struct TileProduct<Block, BFloat16> {
  typename Block::template PerWarp<TensorStrip<Block>> strips;

  KVLAB_DEVICE void clear(Block& block) {
    block.each_warp([&](int warp) { strips[warp].clear(); });
  }
  // Adds the products of `columns` columns; up to the next multiple of 16 the slices hold zeros.
  KVLAB_DEVICE void multiply_add(Block& block, const BFloat16* rows, const BFloat16* keys,
                                 int columns) {
    constexpr int kStride = TileSlice<BFloat16>::kStride;
    block.each_warp([&](int warp) {
      for (int column = 0; column < columns; column += 16) {
        strips[warp].multiply_add(rows + warp * 16 * kStride + column, keys + column, kStride);
      }
    });
  }
  KVLAB_DEVICE void store(Block& block, float* scores) {
    block.each_warp(
        [&](int warp) { strips[warp].store(scores + warp * 16 * kScoreStride, kScoreStride); });
  }
};

template <class Block>
struct TileProduct<Block, float> {
  // Thread t has rows t / 16 + 8 i and keys t % 16 + 16 j.
  struct Part {
    float of[8][4];
  };
  typename Block::template PerThread<Part> parts;

  KVLAB_DEVICE void clear(Block& block) {
    block.each_thread([&](int thread) {
      KVLAB_UNROLL
      for (int i = 0; i < 8; ++i) {
        KVLAB_UNROLL
        for (int j = 0; j < 4; ++j) {
          parts[thread].of[i][j] = 0;
        }
      }
    });
  }
  // `columns` is a multiple of 4.
  KVLAB_DEVICE void multiply_add(Block& block, const float* rows, const float* keys, int columns) {
    constexpr int kStride = TileSlice<float>::kStride;
    block.each_thread([&](int thread) {
      Part& part = parts[thread];
      for (int column = 0; column < columns; column += 4) {
        float key[4][4];
        KVLAB_UNROLL
        for (int j = 0; j < 4; ++j) {
          widen_vector(load_vector(keys + (thread % 16 + 16 * j) * kStride + column), key[j],
                       float{});
        }
        KVLAB_UNROLL
        for (int i = 0; i < 8; ++i) {
          float row[4];
          widen_vector(load_vector(rows + (thread / 16 + 8 * i) * kStride + column), row, float{});
          KVLAB_UNROLL
          for (int j = 0; j < 4; ++j) {
            KVLAB_UNROLL
            for (int c = 0; c < 4; ++c) {
              part.of[i][j] += row[c] * key[j][c];
            }
          }
        }
      }
    });
  }
  KVLAB_DEVICE void store(Block& block, float* scores) {
    block.each_thread([&](int thread) {
      KVLAB_UNROLL
      for (int i = 0; i < 8; ++i) {
        KVLAB_UNROLL
        for (int j = 0; j < 4; ++j) {
          scores[(thread / 16 + 8 * i) * kScoreStride + thread % 16 + 16 * j] =
              parts[thread].of[i][j];
        }
      }
    });
  }
};

// One thread's share of a slice: columns [first, first + kColumns) of 64 rows, row_at(r) being the
// address of row r; zeros from `count` rows and from head_dim columns on.
template <class Element, class RowAt>
KVLAB_DEVICE void stage_slice(int thread, int count, int head_dim, int first, const RowAt& row_at,
                              Element* slice) {
  using Slice = TileSlice<Element>;
  for (int i = thread; i < kTileRows * Slice::kVectors; i += kTileThreads) {
    const int row = i / Slice::kVectors;
    const int column = i % Slice::kVectors * kVectorElements<Element>;
    Vector16 vector{};
    if (row < count && first + column < head_dim) {
      vector = load_vector(row_at(row) + first + column);
    }
    store_vector(slice + row * Slice::kStride + column, vector);
  }
}

// Unscaled scores [64, kScoreStride] of `rows` query rows and `keys` keys; what lies beyond them in
// the tile is 0. `slices`: 2 * TileSlice::kBytes of shared memory.
template <class Element, class Block, class QueryAt, class KeyAt>
KVLAB_DEVICE void tile_scores(Block& block, int rows, const QueryAt& query_at, int keys,
                              const KeyAt& key_at, int head_dim, char* slices, float* scores) {
  using Slice = TileSlice<Element>;
  static_assert(kTileRows == kTileKeys);
  auto* query_slice = reinterpret_cast<Element*>(slices);
  auto* key_slice = reinterpret_cast<Element*>(slices + Slice::kBytes);
  TileProduct<Block, Element> product;
  product.clear(block);
  for (int first = 0; first < head_dim; first += Slice::kColumns) {
    block.each_thread([&](int thread) {
      stage_slice(thread, rows, head_dim, first, query_at, query_slice);
      stage_slice(thread, keys, head_dim, first, key_at, key_slice);
    });
    product.multiply_add(block, query_slice, key_slice,
                         static_cast<int>(smaller(Slice::kColumns, head_dim - first)));
  }
  product.store(block, scores);
}

}  // namespace kvlab
