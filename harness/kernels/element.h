// Element types of the kernels, and how they find rows in memory. No torch: callers pass raw
// pointers and strides.
#pragma once

#include <bit>
#include <cstdint>

namespace kvlab {

enum class ElementType { kFloat32, kBFloat16 };

constexpr int64_t element_size(ElementType type) { return type == ElementType::kFloat32 ? 4 : 2; }

// The upper half of an IEEE float.
struct BFloat16 {
  uint16_t bits = 0;
};

inline float to_float(float value) { return value; }
inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return BFloat16{static_cast<uint16_t>((bits >> 16) | 0x40U)};
  }
  return BFloat16{static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

template <typename Element>
Element from_float(float value) {
  if constexpr (sizeof(Element) == sizeof(float)) {
    return value;
  } else {
    return to_bfloat16(value);
  }
}

// Rows of several heads: element d of row r of head h is data[h * head_stride + r * row_stride +
// d]. Strides count elements; the elements of a row lie side by side.
struct HeadRows {
  const void* data = nullptr;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};
struct MutableHeadRows {
  void* data = nullptr;
  int64_t head_stride = 0;
  int64_t row_stride = 0;
};

template <typename Element>
const Element* row_of(const HeadRows& rows, int64_t head, int64_t row) {
  return static_cast<const Element*>(rows.data) + head * rows.head_stride + row * rows.row_stride;
}
template <typename Element>
Element* row_of(const MutableHeadRows& rows, int64_t head, int64_t row) {
  return static_cast<Element*>(rows.data) + head * rows.head_stride + row * rows.row_stride;
}

}  // namespace kvlab
