#include <immintrin.h>

#include "benchmarks/kernels/peak_loop_impl.h"
#include "benchmarks/kernels/peak_loops.h"

namespace kvlab {

float avx2_peak_loop(int64_t steps) {
  return peak_loop<__m256, 12>(steps, _mm256_set1_ps(1.0F), [](__m256 sum, __m256 ones) {
    return _mm256_fmadd_ps(ones, ones, sum);
  });
}

}  // namespace kvlab
