// What the machine itself can do, measured in the same run as the kernels.
#pragma once

#include <algorithm>

namespace kvlab {

struct MachinePeaks {
  // Of a bfloat16 GEMM's inner loop, by pairs and in tile registers; 0: no such instruction.
  double bf16_gflops = 0;
  double tile_gflops = 0;
  double fp32_gflops = 0;
  double read_gbytes = 0;  // reading memory far larger than the caches

  // What a GEMM can reach: bfloat16 may be widened and multiplied as float32, where that is faster.
  double gemm_gflops(bool bfloat16) const {
    return bfloat16 ? std::max({bf16_gflops, tile_gflops, fp32_gflops}) : fp32_gflops;
  }
};

// Measured once, with kernel_threads() threads, best of a few tries.
const MachinePeaks& machine_peaks();

}  // namespace kvlab
