// The steps between the matrix products, row by row on raw pointers: norms, rotations, SiLU. All
// arithmetic is float32 with one rounding at the end; a row's result depends on that row alone.
// No torch; layer_ops.h holds the same steps on tensors.
#pragma once

#include <cstdint>

#include "harness/kernels/element.h"

namespace kvlab {

// out = x / sqrt(mean(x^2) + eps) * weight. With `delta`, x += delta comes first (and is rounded to
// the element type, as stored).
struct RmsNormArgs {
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0;
  int64_t size = 0;
  float eps = 0;
  void* x = nullptr;            // [rows, size]; written only with `delta`
  const void* delta = nullptr;  // [rows, size] or null
  const void* weight = nullptr;
  void* out = nullptr;  // [rows, size]
};
void rms_norm_rows(const RmsNormArgs& args);

// Rotates the two halves of every head by its row's angles, after an optional RMS norm over the
// head (qwen3). `out` may be the input.
struct RotateArgs {
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0;
  int64_t num_heads = 0;
  int64_t head_dim = 0;
  HeadRows x;                  // [num_heads, rows, head_dim]
  MutableHeadRows out;         // the same shape
  const float* cos = nullptr;  // [rows, head_dim / 2]; null: no rotation (norm alone)
  const float* sin = nullptr;
  const void* norm_weight = nullptr;  // [head_dim] or null
  float eps = 0;
};
void rotate_rows(const RotateArgs& args);

// out = silu(gate) * up.
struct SiluMulArgs {
  ElementType type = ElementType::kFloat32;
  int64_t rows = 0;
  int64_t size = 0;
  const void* gate = nullptr;  // [rows, size], row strides in elements
  const void* up = nullptr;
  int64_t in_row_stride = 0;  // of gate and up
  void* out = nullptr;        // [rows, size] contiguous; may be `gate` where that is contiguous
};
void silu_mul_rows(const SiluMulArgs& args);

}  // namespace kvlab
