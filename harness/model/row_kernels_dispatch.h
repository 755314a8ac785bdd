// The block functions of one instruction set, behind row_kernels.cpp.
#pragma once

#include <cstdint>

#include "harness/model/row_kernels.h"

namespace kvlab::internal {

// Rows begin .. end - 1 of a call, for one element type.
struct RowKernels {
  void (*rms_norm)(const RmsNormArgs&, int64_t begin, int64_t end);
  void (*rotate)(const RotateArgs&, int64_t begin, int64_t end);
  void (*silu_mul)(const SiluMulArgs&, int64_t begin, int64_t end);
};

RowKernels portable_row_kernels(ElementType type);
#if defined(__x86_64__)
RowKernels avx2_row_kernels(ElementType type);
RowKernels avx512_row_kernels(ElementType type);
#endif

}  // namespace kvlab::internal
