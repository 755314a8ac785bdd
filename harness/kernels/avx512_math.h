// Vector helpers of the AVX-512 translation units; include nowhere else.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "harness/kernels/element.h"
#include "harness/kernels/exp2_polynomial.h"

namespace kvlab::avx512 {

// Mask of the first `count` lanes; all of them from 16 (32) on, none from 0 down.
static inline __mmask16 first_lanes_16(int64_t count) {
  return count >= 16  ? __mmask16{0xffff}
         : count <= 0 ? __mmask16{0}
                      : static_cast<__mmask16>((1U << count) - 1U);
}
static inline __mmask32 first_lanes_32(int64_t count) {
  return count >= 32  ? __mmask32{0xffffffff}
         : count <= 0 ? __mmask32{0}
                      : static_cast<__mmask32>((1U << count) - 1U);
}

// e^x for x <= 88, relative error about 1e-7: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor
// polynomial of degree 7 would be exact to 5e-9 there; degree 6 leaves 1.2e-7. Below -104 it is
// the value at -104, smaller than any normal float.
static inline __m512 exp_ps(__m512 x) {
  x = _mm512_max_ps(_mm512_set1_ps(-104.0F), x);  // in this order a NaN stays one
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504088896341F)),
                                        _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693145751953125F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(1.428606765330187e-06F), r);
  __m512 p = _mm512_set1_ps(1.0F / 720);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

// 2^x for finite x below 127 by the polynomial of kDegree (exp2_polynomial.h): x = n + r with
// |r| <= 1/2. Far below -150 it is 0.
template <int kDegree>
static inline __m512 exp2_ps(__m512 x) {
  static_assert(kDegree == 4 || kDegree == 6);
  const __m512 n = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(x, n);
  const float* coefficients = kDegree == 4 ? kExp2Degree4 : kExp2Degree6;
  __m512 p = _mm512_set1_ps(coefficients[0]);
#pragma GCC unroll 6
  for (int i = 1; i <= kDegree; ++i) {
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(coefficients[i]));
  }
  return _mm512_scalef_ps(p, n);
}

// Sixteen bfloat16 as floats.
static inline __m512 widen(__m256i values) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}

static inline __m512 load_floats(const float* p, __mmask16 mask) {
  return _mm512_maskz_loadu_ps(mask, p);
}
static inline __m512 load_floats(const BFloat16* p, __mmask16 mask) {
  return widen(_mm256_maskz_loadu_epi16(mask, p));
}

static inline void store_floats(float* p, __mmask16 mask, __m512 value) {
  _mm512_mask_storeu_ps(p, mask, value);
}
static inline void store_floats(BFloat16* p, __mmask16 mask, __m512 value) {
  _mm256_mask_storeu_epi16(p, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
}

// Lane i of the result is the sum of the lanes of v[i], added in an order that is the same for
// every i.
static inline __m512 sum_lanes_of_16(__m512 (&v)[16]) {
  __m512 quads[4];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
    const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(v[4 * q], v[4 * q + 1]),
                                    _mm512_unpackhi_ps(v[4 * q], v[4 * q + 1]));
    const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(v[4 * q + 2], v[4 * q + 3]),
                                    _mm512_unpackhi_ps(v[4 * q + 2], v[4 * q + 3]));
    const __m512d ab_d = _mm512_castps_pd(ab);
    const __m512d cd_d = _mm512_castps_pd(cd);
    quads[q] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab_d, cd_d)),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(ab_d, cd_d)));
  }
  const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(quads[0], quads[1], 0x88),
                                  _mm512_shuffle_f32x4(quads[0], quads[1], 0xdd));
  const __m512 cd = _mm512_add_ps(_mm512_shuffle_f32x4(quads[2], quads[3], 0x88),
                                  _mm512_shuffle_f32x4(quads[2], quads[3], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
}

}  // namespace kvlab::avx512
