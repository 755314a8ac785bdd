#include <immintrin.h>

#include "benchmarks/kernels/peak_loops.h"

namespace kvlab {

float avx2_peak_loop(int64_t steps) {
  constexpr int kSums = 12;
  __m256 factor = _mm256_set1_ps(1.0F);
  __m256 sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) {
    sums[i] = _mm256_setzero_ps();
    asm volatile("" : "+x"(sums[i]));  // equal sums would be computed once
  }
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) {
      sums[i] = _mm256_fmadd_ps(factor, factor, sums[i]);
    }
    // What the compiler cannot see through, so that no step is left out.
    asm volatile("" : "+x"(factor));
  }
  __m256 total = sums[0];
#pragma GCC unroll 12
  for (int i = 1; i < kSums; ++i) {
    total = _mm256_add_ps(total, sums[i]);
  }
  return total[0];
}

}  // namespace kvlab
