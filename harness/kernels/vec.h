// Floats side by side in the widest registers that the including file is compiled for: eight with
// AVX2, four elsewhere. For the kernels' *_impl.h, which are compiled once per instruction set;
// all of it is local to the including file, so that no copy serves another.
#pragma once

#include <cstdint>
#include <cstring>

#include "harness/kernels/bring_near.h"
#include "harness/kernels/element.h"
#include "harness/kernels/exp2_polynomial.h"

#if defined(__AVX2__) && defined(__FMA__)
#define KVLAB_VEC_AVX2 1
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace kvlab {
namespace {

#if defined(KVLAB_VEC_AVX2)
constexpr int kVecBytes = 32;
constexpr int kVecTileRows = 6;  // 12 registers of sums, two of factors, one broadcast
#elif defined(__aarch64__)
constexpr int kVecBytes = 16;
constexpr int kVecTileRows = 6;  // of 32 registers 24 are sums
#else
constexpr int kVecBytes = 16;
constexpr int kVecTileRows = 3;
#endif
constexpr int kVecFloats = kVecBytes / 4;
constexpr int kVecsOf16 = 16 / kVecFloats;  // registers that hold sixteen floats

using Vec [[gnu::vector_size(kVecBytes)]] = float;
using IntVec [[gnu::vector_size(kVecBytes)]] = int32_t;
using HalfVec [[gnu::vector_size(kVecBytes / 2)]] = uint16_t;

inline Vec vec_load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
inline void vec_store(float* p, Vec v) { std::memcpy(p, &v, sizeof(v)); }

// bfloat16 as floats, which is exact.
inline Vec vec_load(const BFloat16* p) {
#if defined(KVLAB_VEC_AVX2)
  // What compilers make of the general form takes five instructions in place of two.
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
#else
  HalfVec half;
  std::memcpy(&half, p, sizeof(half));
  return reinterpret_cast<Vec>(__builtin_convertvector(half, IntVec) << 16);
#endif
}

inline Vec vec_set(float value) {
#if defined(KVLAB_VEC_AVX2)
  return _mm256_set1_ps(value);
#else
  return Vec{value, value, value, value};
#endif
}

// a * b + c, rounded once where the instructions can.
inline Vec vec_fma(Vec a, Vec b, Vec c) {
#if defined(KVLAB_VEC_AVX2)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

// The larger; b where one of them is no number.
inline Vec vec_max(Vec a, Vec b) {
#if defined(KVLAB_VEC_AVX2)
  return _mm256_max_ps(a, b);
#elif defined(__SSE2__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}

inline float vec_largest(Vec v) {
  float largest = v[0];
  for (int i = 1; i < kVecFloats; ++i) {
    largest = v[i] > largest ? v[i] : largest;
  }
  return largest;
}

// In pairs that lie half a register apart.
inline float vec_sum(Vec v) {
  for (int half = kVecFloats / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      v[i] += v[i + half];
    }
  }
  return v[0];
}

// Lane i of the result is the sum of the lanes of v[i], added in an order that is the same for
// every i.
inline Vec vec_sum_each(const Vec (&v)[kVecFloats]) {
#if defined(KVLAB_VEC_AVX2)
  const Vec low = _mm256_hadd_ps(_mm256_hadd_ps(v[0], v[1]), _mm256_hadd_ps(v[2], v[3]));
  const Vec high = _mm256_hadd_ps(_mm256_hadd_ps(v[4], v[5]), _mm256_hadd_ps(v[6], v[7]));
  return _mm256_permute2f128_ps(low, high, 0x20) + _mm256_permute2f128_ps(low, high, 0x31);
#else
  Vec sums = {};
  for (int i = 0; i < kVecFloats; ++i) {
    sums[i] = vec_sum(v[i]);
  }
  return sums;
#endif
}

// Lanes i with begin <= i < end keep their value, the others become zero.
inline Vec vec_keep(Vec v, int64_t begin, int64_t end) {
  IntVec lane = {};
  for (int i = 0; i < kVecFloats; ++i) {
    lane[i] = i;
  }
  const auto first = static_cast<int32_t>(begin < 0 ? 0 : begin > kVecFloats ? kVecFloats : begin);
  const auto last = static_cast<int32_t>(end < 0 ? 0 : end > kVecFloats ? kVecFloats : end);
  const IntVec kept = (lane >= first) & (lane < last);
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(v) & kept);
}

// 2^x for x < 127 by the polynomial of kDegree (exp2_polynomial.h): x = n + r with |r| <= 1/2.
// Below -125 it is the value at -125; a NaN stays one.
template <int kDegree>
inline Vec vec_exp2(Vec x) {
  static_assert(kDegree == 4 || kDegree == 6);
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  x = vec_max(vec_set(-125.0F), x);
  const Vec shifted = x + 12582912.0F;
  const Vec r = x - (shifted - 12582912.0F);
  const float* coefficients = kDegree == 4 ? kExp2Degree4 : kExp2Degree6;
  Vec p = vec_set(coefficients[0]);
#pragma GCC unroll 6
  for (int i = 1; i <= kDegree; ++i) {
    p = vec_fma(p, r, vec_set(coefficients[i]));
  }
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(p) +
                               (reinterpret_cast<IntVec>(shifted) << 23));
}

// Adds to sums[r][v] the products of rows of factors (row_stride floats apart) with sixteen
// columns, `steps` long. columns: [steps, 16] floats.
template <int kRows>
inline void add_tile_products(const float* rows, int64_t row_stride, const float* columns,
                              int64_t steps, Vec (&sums)[kRows][kVecsOf16]) {
  for (int64_t step = 0; step < steps; ++step) {
    Vec c[kVecsOf16];
#pragma GCC unroll 4
    for (int v = 0; v < kVecsOf16; ++v) {
      c[v] = vec_load(columns + step * 16 + v * kVecFloats);
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const Vec factor = vec_set(rows[r * row_stride + step]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecsOf16; ++v) {
        sums[r][v] = vec_fma(factor, c[v], sums[r][v]);
      }
    }
  }
}

template <int kRows, typename Body>
inline void with_tile_rows(int64_t rows, const Body& body) {
  if constexpr (kRows > 1) {
    if (rows < kRows) {
      with_tile_rows<kRows - 1>(rows, body);
      return;
    }
  }
  body.template operator()<kRows>();
}

inline int64_t num_vec_tiles(int64_t rows) { return (rows + kVecTileRows - 1) / kVecTileRows; }

// Calls body.operator()<kRows>(first) for tiles of nearly equal height that make up `rows`.
template <typename Body>
inline void for_each_vec_tile(int64_t rows, const Body& body) {
  const int64_t num_tiles = num_vec_tiles(rows);
  for (int64_t t = 0; t < num_tiles; ++t) {
    const int64_t first = rows * t / num_tiles;
    with_tile_rows<kVecTileRows>(rows * (t + 1) / num_tiles - first,
                                 [&]<int kRows>() { body.template operator()<kRows>(first); });
  }
}

}  // namespace
}  // namespace kvlab
