// How a kernel is written: one source that nvcc compiles for the GPU and the C++ compiler compiles
// into plain loops, which tests compare with the CPU reference where there is no GPU.
//
// A kernel is a struct with a type Params, constants kThreads and kSharedBytes, and
//
//   template <class Block>
//   KVLAB_DEVICE static void run(Block& block, char* shared, const Params& params);
//
// The body is a sequence of phases, block.each_thread([&](int thread) { ... }) or
// block.each_warp([&](int warp) { ... }), with a barrier after each. What a thread carries from one
// phase to the next is a Block::PerThread<T>; outside of phases only values that are equal for all
// threads are computed. `shared` is aligned to 128 bytes and holds garbage at the start.
//
//   GpuBlock (launch.cuh)                        one CUDA thread block
//   HostBlock (tests/harness/kernels/cuda)       the phases run thread by thread, in any order
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define KVLAB_DEVICE __device__ __forceinline__
#define KVLAB_HOST_DEVICE __host__ __device__
#define KVLAB_UNROLL _Pragma("unroll")
#else
#define KVLAB_DEVICE inline
#define KVLAB_HOST_DEVICE
#define KVLAB_UNROLL
#endif

namespace kvlab {

// Blocks of a launch.
struct Grid {
  int64_t x = 1;
  int64_t y = 1;  // at most 65,535
  int64_t z = 1;  // at most 65,535
};

// A kernel launcher has
//   template <class Kernel> void launch(Grid grid, const typename Kernel::Params& params);
// which runs Kernel::run for every block, after all launches before it.

constexpr int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace kvlab
