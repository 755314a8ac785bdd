// The inner loops of decode_attention on float32 products, compiled once for any CPU and once for
// AVX2.
#pragma once

#include <algorithm>
#include <limits>

#include "harness/kernels/decode_attention_kernels.h"
#include "harness/kernels/vec.h"

namespace kvlab {
namespace {

constexpr int64_t kMaxHeadDim = 256;
constexpr int kTileQueries = 3;  // with four registers of values, or four keys, 12 of sums
constexpr int kTileKeys = 4;     // divides kVecFloats

// Queries as floats, zero up to a whole number of registers.
class WideQueries final {
 public:
  template <typename Element>
  WideQueries(const Element* queries, int64_t rows, int64_t head_dim) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t d = 0; d < head_dim; ++d) {
        values_[r][d] = to_float(queries[r * head_dim + d]);
      }
    }
  }
  const float* row(int64_t r) const { return values_[r]; }

 private:
  float values_[kTileQueries][kMaxHeadDim] = {};
};

template <typename Element>
Vec load_part(const Element* row, int64_t d, int64_t head_dim) {
  if (d + kVecFloats <= head_dim) {
    return vec_load(row + d);
  }
  float rest[kVecFloats] = {};
  for (int64_t i = 0; d + i < head_dim; ++i) {
    rest[i] = to_float(row[d + i]);
  }
  return vec_load(rest);
}

// products[r][first + j]: lane-wise products of query r with key j of kKeys, not yet summed over
// lanes.
template <typename Element, int kRows, int kKeys>
[[gnu::always_inline]] inline void multiply_keys(const WideQueries& queries, const Element* keys,
                                                 int64_t head_dim, int first,
                                                 Vec (&products)[kRows][kVecFloats]) {
  Vec sums[kRows][kKeys] = {};
  for (int64_t d = 0; d < head_dim; d += kVecFloats) {
    Vec query[kRows];
#pragma GCC unroll 3
    for (int r = 0; r < kRows; ++r) {
      query[r] = vec_load(queries.row(r) + d);
    }
#pragma GCC unroll 4
    for (int j = 0; j < kKeys; ++j) {
      const Vec part = load_part(keys + j * head_dim, d, head_dim);
#pragma GCC unroll 3
      for (int r = 0; r < kRows; ++r) {
        sums[r][j] = vec_fma(query[r], part, sums[r][j]);
      }
    }
  }
#pragma GCC unroll 3
  for (int r = 0; r < kRows; ++r) {
    std::copy_n(sums[r], kKeys, products[r] + first);
  }
}

// Scaled scores of kRows queries against a run, into scores[row * score_stride + ...].
template <typename Element, int kRows>
void score_run(const DecodeChunk& chunk, const WideQueries& queries, const DecodeRun& run,
               float* scores) {
  const int64_t head_dim = chunk.head_dim;
  const int64_t entry_bytes = head_dim * static_cast<int64_t>(sizeof(Element));
  for (int64_t i = 0; i < run.len; i += kVecFloats) {
    const Element* keys = static_cast<const Element*>(run.keys) + i * head_dim;
    const auto count = static_cast<int>(std::min<int64_t>(kVecFloats, run.len - i));
    bring_near(static_cast<const char*>(run.values) + i * entry_bytes, count * entry_bytes);
    Vec products[kRows][kVecFloats];
    if (count == kVecFloats) {
      for (int j = 0; j < kVecFloats; j += kTileKeys) {
        multiply_keys<Element, kRows, kTileKeys>(queries, keys + j * head_dim, head_dim, j,
                                                 products);
      }
    } else {
      for (int j = 0; j < kVecFloats; ++j) {  // behind the last key it once more
        multiply_keys<Element, kRows, 1>(queries, keys + std::min(j, count - 1) * head_dim,
                                         head_dim, j, products);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      // Scratch rows are padded to whole registers, but the next run's scores may follow.
      const Vec sums = vec_sum_each(products[r]) * chunk.scale;
      std::memcpy(scores + r * chunk.score_stride + i, &sums, count * sizeof(float));
    }
  }
}

// Turns scores into weights; returns their sum, and the largest score.
float soften(float* scores, int64_t len, float* largest_out) {
  Vec largest = vec_set(-std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kVecFloats <= len; i += kVecFloats) {
    largest = vec_max(vec_load(scores + i), largest);
  }
  float most = vec_largest(largest);
  for (; i < len; ++i) {
    most = std::max(most, scores[i]);
  }
  *largest_out = most;
  Vec sum = {};
  for (i = 0; i < len; i += kVecFloats) {
    // Scratch rows are padded to whole registers.
    const Vec weights = vec_exp2<6>((vec_load(scores + i) - most) * kLog2E);
    vec_store(scores + i, weights);
    sum += vec_keep(weights, 0, len - i);
  }
  return vec_sum(sum);
}

// Adds the weighted values of both runs to kRows queries, kVecs registers of dimensions from d on.
template <typename Element, int kRows, int kVecs>
void weigh_values(const DecodeChunk& chunk, int64_t first_row, int64_t d) {
  const int64_t head_dim = chunk.head_dim;
  Vec sums[kRows][kVecs] = {};
  const float* weights = chunk.weights + first_row * chunk.score_stride;
  for (const DecodeRun& run : chunk.runs) {
    if (run.len == 0) {
      continue;
    }
    const Element* value = static_cast<const Element*>(run.values) + d;
    for (int64_t i = 0; i < run.len; ++i, value += head_dim) {
      Vec weight[kRows];
#pragma GCC unroll 3
      for (int r = 0; r < kRows; ++r) {
        weight[r] = vec_set(weights[r * chunk.score_stride + i]);
      }
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) {
        const Vec part =
            kVecs > 1 ? vec_load(value + v * kVecFloats) : load_part(value, 0, head_dim - d);
#pragma GCC unroll 3
        for (int r = 0; r < kRows; ++r) {
          sums[r][v] = vec_fma(weight[r], part, sums[r][v]);
        }
      }
    }
    weights += run.len;
  }
  for (int r = 0; r < kRows; ++r) {
    float values[kVecs * kVecFloats];
    for (int v = 0; v < kVecs; ++v) {
      vec_store(values + v * kVecFloats, sums[r][v]);
    }
    std::copy_n(values, std::min<int64_t>(kVecs * kVecFloats, head_dim - d),
                chunk.output + (first_row + r) * head_dim + d);
  }
}

template <typename Element, int kRows>
void attend_rows(const DecodeChunk& chunk, int64_t first_row) {
  const WideQueries queries(static_cast<const Element*>(chunk.queries) + first_row * chunk.head_dim,
                            kRows, chunk.head_dim);
  float* scores = chunk.weights + first_row * chunk.score_stride;
  int64_t len = 0;
  for (const DecodeRun& run : chunk.runs) {
    score_run<Element, kRows>(chunk, queries, run, scores + len);
    len += run.len;
  }
  // Caches of many arms lie apart: without this each of them starts with the memory's delay.
  bring_near(chunk.next_keys,
             chunk.next_len * chunk.head_dim * static_cast<int64_t>(sizeof(Element)));
  for (int64_t row = first_row; row < first_row + kRows; ++row) {
    chunk.sum[row] = soften(chunk.weights + row * chunk.score_stride, len, chunk.largest + row);
  }
  int64_t d = 0;
  for (; d + 4 * kVecFloats <= chunk.head_dim; d += 4 * kVecFloats) {
    weigh_values<Element, kRows, 4>(chunk, first_row, d);
  }
  for (; d < chunk.head_dim; d += kVecFloats) {
    weigh_values<Element, kRows, 1>(chunk, first_row, d);
  }
}

template <typename Element>
void attend(const DecodeChunk& chunk) {
  // Tiles of nearly equal height: 4 queries are 2 + 2, not 3 + 1.
  const int64_t num_tiles = (chunk.group_size + kTileQueries - 1) / kTileQueries;
  for (int64_t t = 0; t < num_tiles; ++t) {
    const int64_t first = chunk.group_size * t / num_tiles;
    with_tile_rows<kTileQueries>(chunk.group_size * (t + 1) / num_tiles - first,
                                 [&]<int kRows>() { attend_rows<Element, kRows>(chunk, first); });
  }
}

void decode_chunk(const DecodeChunk& chunk) {
  if (chunk.type == ElementType::kFloat32) {
    attend<float>(chunk);
  } else {
    attend<BFloat16>(chunk);
  }
}

}  // namespace
}  // namespace kvlab
