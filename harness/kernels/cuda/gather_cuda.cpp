#include "harness/kernels/cuda/gather_cuda.h"

#include "harness/base/status.h"
#include "harness/kernels/cuda/cuda_device.h"
#include "harness/kernels/cuda/gather_kernel.h"
#include "harness/kernels/cuda/launches.h"

namespace kvlab {

absl::Status gather_cuda(const CudaGatherArgs& args, void* stream) {
  if (args.row_bytes < kVectorBytes || args.row_bytes % kVectorBytes != 0) {
    return invalid_argument("the gather on the GPU: rows of {} bytes, must be a multiple of {}",
                            args.row_bytes, kVectorBytes);
  }
  if (args.largest_count > kGatherMaxCount) {
    return invalid_argument("the gather on the GPU: a head keeps {} entries, at most {}",
                            args.largest_count, kGatherMaxCount);
  }
  return cuda_status(launch_gather(args, stream), "the gather");
}

}  // namespace kvlab
