#include "harness/kernels/cuda/gather_kernel.h"
#include "harness/kernels/cuda/launch.cuh"
#include "harness/kernels/cuda/launches.h"

namespace kvlab {

int launch_gather(const CudaGatherArgs& args, void* stream) {
  GpuLauncher launcher(stream);
  launch_gather_on(launcher, args);
  return launcher.error();
}

}  // namespace kvlab
