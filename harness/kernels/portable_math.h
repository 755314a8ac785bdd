// Scalar functions that compilers turn into vector code.
#pragma once

#include <bit>
#include <cstdint>

namespace kvlab {

// e^x for x <= 88, relative error about 1e-7; 0 or a tiny value below -87. As a Taylor polynomial
// of degree 6 on |r| <= ln 2 / 2, x = n ln 2 + r.
inline float exp_portable(float x) {
  x = x < -87.0F ? -87.0F : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  const float shifted = x * 1.44269504088896341F + 12582912.0F;
  const float n = shifted - 12582912.0F;
  float r = x - n * 0.693145751953125F;
  r = r - n * 1.428606765330187e-06F;
  float p = 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const auto exponent = static_cast<uint32_t>(std::bit_cast<int32_t>(shifted)) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
}

}  // namespace kvlab
