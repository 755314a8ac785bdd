#include "harness/kernels/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include "harness/base/status.h"

namespace kvlab {

std::optional<std::string> cuda_unavailable_reason() {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    return fmt::format("no CUDA device: {}", cudaGetErrorString(error));
  }
  if (count == 0) {
    return "no CUDA device";
  }
  int device = 0;
  int major = 0;
  int minor = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (major < 8) {
    return fmt::format("the CUDA device is sm_{}{}, the kernels need sm_80 or newer", major, minor);
  }
  return std::nullopt;
}

absl::Status cuda_status(int error, std::string_view what) {
  if (error == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError(to_absl(
      fmt::format("{} on the GPU: {}", what, cudaGetErrorString(static_cast<cudaError_t>(error)))));
}

}  // namespace kvlab
