#include "harness/kernels/cuda/decode_attention_kernel.h"
#include "harness/kernels/cuda/launch.cuh"
#include "harness/kernels/cuda/launches.h"

namespace kvlab {

int launch_decode_attention(const CudaDecodeArgs& args, void* stream) {
  GpuLauncher launcher(stream);
  launch_decode(launcher, args);
  return launcher.error();
}

}  // namespace kvlab
