// Element conversions, vectors of 16 bytes and small arithmetic, for kernels on either side.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "harness/base/check.h"
#include "harness/kernels/cuda/block.h"
#include "harness/kernels/element.h"

namespace kvlab {

constexpr int kVectorBytes = 16;  // of one load; rows start and end on such a boundary

struct alignas(kVectorBytes) Vector16 {
  uint32_t words[4];
};

// Elements of one Vector16.
template <class Element>
inline constexpr int kVectorElements = kVectorBytes / static_cast<int>(sizeof(Element));

KVLAB_DEVICE float float_of_bits(uint32_t bits) {
#if defined(__CUDACC__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}

KVLAB_DEVICE uint32_t bits_of_float(float value) {
#if defined(__CUDACC__)
  return __float_as_uint(value);
#else
  return std::bit_cast<uint32_t>(value);
#endif
}

KVLAB_DEVICE float widen(float value) { return value; }
KVLAB_DEVICE float widen(BFloat16 value) {
  return float_of_bits(static_cast<uint32_t>(value.bits) << 16);
}

// As to_bfloat16 of element.h: nearest, ties to even, NaN stays NaN.
KVLAB_DEVICE void store_rounded(float value, float* out) { *out = value; }
KVLAB_DEVICE void store_rounded(float value, BFloat16* out) {
  const uint32_t bits = bits_of_float(value);
  const bool nan = (bits & 0x7fffffffU) > 0x7f800000U;
  out->bits = static_cast<uint16_t>(nan ? (bits >> 16) | 0x40U
                                        : (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// The elements of one vector as floats.
KVLAB_DEVICE void widen_vector(const Vector16& vector, float (&out)[4], float) {
  KVLAB_UNROLL
  for (int i = 0; i < 4; ++i) {
    out[i] = float_of_bits(vector.words[i]);
  }
}
KVLAB_DEVICE void widen_vector(const Vector16& vector, float (&out)[8], BFloat16) {
  KVLAB_UNROLL
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = float_of_bits(vector.words[i] << 16);
    out[2 * i + 1] = float_of_bits(vector.words[i] & 0xffff0000U);
  }
}

// `from` and `to` are multiples of 16 bytes.
KVLAB_DEVICE Vector16 load_vector(const void* from) {
#if defined(__CUDACC__)
  return *static_cast<const Vector16*>(from);
#else
  KVLAB_CHECK(reinterpret_cast<uintptr_t>(from) % kVectorBytes == 0);
  Vector16 vector;
  std::memcpy(&vector, from, kVectorBytes);
  return vector;
#endif
}
KVLAB_DEVICE void store_vector(void* to, const Vector16& vector) {
#if defined(__CUDACC__)
  *static_cast<Vector16*>(to) = vector;
#else
  KVLAB_CHECK(reinterpret_cast<uintptr_t>(to) % kVectorBytes == 0);
  std::memcpy(to, &vector, kVectorBytes);
#endif
}

KVLAB_DEVICE float minus_infinity() { return float_of_bits(0xff800000U); }
KVLAB_DEVICE float larger(float a, float b) { return a > b ? a : b; }
KVLAB_DEVICE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// exp(a - b), 0 for a = -infinity whatever b is.
KVLAB_DEVICE float exp_difference(float a, float b) {
  return a == minus_infinity() ? 0.0F : expf(a - b);
}

}  // namespace kvlab
