#include <immintrin.h>

#include "benchmarks/kernels/peak_loop_impl.h"
#include "benchmarks/kernels/peak_loops.h"

namespace kvlab {

constexpr int kSums = 24;

float bf16_peak_loop(int64_t steps) {
  return peak_loop<__m512, kSums>(steps, _mm512_set1_epi32(0x3f803f80),
                                  [](__m512 sum, __m512i ones) {
                                    const auto pairs = reinterpret_cast<__m512bh>(ones);
                                    return _mm512_dpbf16_ps(sum, pairs, pairs);
                                  });
}

float fp32_peak_loop(int64_t steps) {
  return peak_loop<__m512, kSums>(
      steps, _mm512_castps_si512(_mm512_set1_ps(1.0F)), [](__m512 sum, __m512i ones) {
        return _mm512_fmadd_ps(_mm512_castsi512_ps(ones), _mm512_castsi512_ps(ones), sum);
      });
}

}  // namespace kvlab
