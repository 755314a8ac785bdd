// Kernels on the GPU: the block, the __global__ entry and the launcher. Only for .cu files.
#pragma once

#include <cuda_runtime.h>

#include "harness/kernels/cuda/block.h"

namespace kvlab {

template <int kThreads>
struct GpuBlock {
  template <class T>
  struct PerThread {
    T value;
    KVLAB_DEVICE T& operator[](int) { return value; }
  };
  // T is spread over the lanes of each warp.
  template <class T>
  using PerWarp = PerThread<T>;

  template <class Body>
  KVLAB_DEVICE void each_thread(Body&& body) {
    body(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  template <class Body>
  KVLAB_DEVICE void each_warp(Body&& body) {
    body(static_cast<int>(threadIdx.x) / 32);
    __syncthreads();
  }
  KVLAB_DEVICE int64_t x() const { return blockIdx.x; }
  KVLAB_DEVICE int64_t y() const { return blockIdx.y; }
  KVLAB_DEVICE int64_t z() const { return blockIdx.z; }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads) run_kernel(typename Kernel::Params params) {
  __shared__ __align__(128) char shared[Kernel::kSharedBytes];
  GpuBlock<Kernel::kThreads> block;
  Kernel::run(block, shared, params);
}

// Launches on one stream and keeps the first error.
class GpuLauncher {
 public:
  explicit GpuLauncher(void* stream) : stream_(static_cast<cudaStream_t>(stream)) {}

  template <class Kernel>
  void launch(Grid grid, const typename Kernel::Params& params) {
    if (error_ != cudaSuccess || grid.x == 0 || grid.y == 0 || grid.z == 0) {
      return;
    }
    run_kernel<Kernel><<<dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                              static_cast<unsigned>(grid.z)),
                         Kernel::kThreads, 0, stream_>>>(params);
    error_ = cudaGetLastError();
  }
  int error() const { return static_cast<int>(error_); }

 private:
  cudaStream_t stream_;
  cudaError_t error_ = cudaSuccess;
};

}  // namespace kvlab
