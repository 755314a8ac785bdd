#include "harness/kernels/argmax.h"

#include <limits>

namespace kvlab {

int64_t argmax(const float* values, int64_t size) {
  float largest = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) {
    largest = values[i] > largest ? values[i] : largest;
  }
  for (int64_t i = 0; i < size; ++i) {
    if (values[i] == largest) {
      return i;
    }
  }
  return -1;
}

}  // namespace kvlab
