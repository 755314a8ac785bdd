#include <immintrin.h>

#include "benchmarks/kernels/peak_loops.h"

namespace kvlab {
namespace {

constexpr int kSums = 24;

template <typename Step>
float loop(int64_t steps, Step&& one) {
  __m512 sums[kSums];
#pragma GCC unroll 24
  for (auto& sum : sums) {
    sum = _mm512_setzero_ps();
  }
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 24
    for (auto& sum : sums) {
      sum = one(sum);
      asm volatile("" : "+v"(sum));
    }
  }
  __m512 total = sums[0];
  for (int i = 1; i < kSums; ++i) {
    total = _mm512_add_ps(total, sums[i]);
  }
  return _mm512_reduce_add_ps(total);
}

}  // namespace

float bf16_peak_loop(int64_t steps) {
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
  return loop(steps, [&](__m512 sum) { return _mm512_dpbf16_ps(sum, ones, ones); });
}

float fp32_peak_loop(int64_t steps) {
  const __m512 ones = _mm512_set1_ps(1.0F);
  return loop(steps, [&](__m512 sum) { return _mm512_fmadd_ps(ones, ones, sum); });
}

}  // namespace kvlab
