#include "harness/kernels/finite.h"

namespace kvlab {
namespace {

// An exponent of ones marks infinities and NaNs.
template <typename Bits>
bool none_has(const Bits* values, int64_t count, Bits exponent) {
  Bits found = 0;
#pragma omp simd reduction(| : found)
  for (int64_t i = 0; i < count; ++i) {
    found |= static_cast<Bits>((values[i] & exponent) == exponent ? 1 : 0);
  }
  return found == 0;
}

}  // namespace

bool all_finite(ElementType type, const void* values, int64_t count) {
  return type == ElementType::kFloat32
             ? none_has(static_cast<const uint32_t*>(values), count, uint32_t{0x7f800000U})
             : none_has(static_cast<const uint16_t*>(values), count, uint16_t{0x7f80U});
}

}  // namespace kvlab
