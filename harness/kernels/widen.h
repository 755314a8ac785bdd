// For the kernels' own files, which are compiled with OpenMP's simd pragma.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// `size` values side by side as floats.
// In every caller's own instructions: no copy of one serves another.
template <typename Element>
[[gnu::always_inline]] inline void widen(const Element* from, int64_t size, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    to[i] = to_float(from[i]);
  }
}

}  // namespace kvlab
