#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// No infinity and no NaN among `count` values side by side.
bool all_finite(ElementType type, const void* values, int64_t count);

}  // namespace kvlab
