// The highest of many numbers.
#pragma once

#include <cstdint>

namespace kvlab {

// Index of the highest value, the lowest among equals; NaN never wins. -1 where there is none.
int64_t argmax(const float* values, int64_t size);

}  // namespace kvlab
