#include "harness/model/row_kernels_dispatch.h"

namespace kvlab::internal {

#include "harness/model/row_kernels_impl.h"

RowKernels portable_row_kernels(ElementType type) { return row_kernels(type); }

}  // namespace kvlab::internal
