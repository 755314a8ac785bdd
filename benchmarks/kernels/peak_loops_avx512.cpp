#include <immintrin.h>

#include "benchmarks/kernels/peak_loops.h"

namespace kvlab {
namespace {

constexpr int kSums = 24;

template <typename Step>
float loop(int64_t steps, __m512i factor, Step&& one) {
  __m512 sums[kSums];
#pragma GCC unroll 24
  for (int i = 0; i < kSums; ++i) {
    sums[i] = _mm512_setzero_ps();
    asm volatile("" : "+v"(sums[i]));  // equal sums would be computed once
  }
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 24
    for (int i = 0; i < kSums; ++i) {
      sums[i] = one(sums[i], factor);
    }
    // What the compiler cannot see through, so that no step is left out.
    asm volatile("" : "+v"(factor));
  }
  __m512 total = sums[0];
#pragma GCC unroll 24
  for (int i = 1; i < kSums; ++i) {
    total = _mm512_add_ps(total, sums[i]);
  }
  return _mm512_reduce_add_ps(total);
}

}  // namespace

float bf16_peak_loop(int64_t steps) {
  return loop(steps, _mm512_set1_epi32(0x3f803f80), [](__m512 sum, __m512i ones) {
    const auto pairs = reinterpret_cast<__m512bh>(ones);
    return _mm512_dpbf16_ps(sum, pairs, pairs);
  });
}

float fp32_peak_loop(int64_t steps) {
  return loop(steps, _mm512_castps_si512(_mm512_set1_ps(1.0F)), [](__m512 sum, __m512i ones) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(ones), _mm512_castsi512_ps(ones), sum);
  });
}

}  // namespace kvlab
