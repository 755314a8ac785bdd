#include "harness/model/row_kernels_dispatch.h"

namespace kvlab::internal {

#include "harness/model/row_kernels_impl.h"

RowKernels avx2_row_kernels(ElementType type) {
  if (type == ElementType::kFloat32) {
    return {rms_norm_block<float>, rotate_block<float>, silu_mul_block<float>};
  }
  return {rms_norm_block<BFloat16>, rotate_block<BFloat16>, silu_mul_block<BFloat16>};
}

}  // namespace kvlab::internal
