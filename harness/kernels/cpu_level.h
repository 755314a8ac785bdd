// Which set of vector instructions the kernels use, chosen at run time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kvlab {

enum class CpuLevel {
  kReference,    // plain loops, for checking
  kPortable,     // C++ in registers of four floats, any CPU
  kAvx2,         // the same sources in registers of eight, with fused products: AVX2 and FMA
  kAvx512,       // AVX-512 F, BW, DQ, VL and BF16: products of bfloat16 pairs by their instruction
  kAvx512Widen,  // the same, but large products of bfloat16 are widened and multiplied as float32
  kAmx,          // the same, but large products of bfloat16 are multiplied in tile registers
};

// bfloat16 in a row of a tile register: kAmx's products are of whole ones.
constexpr int64_t kTileDepth = 32;

std::string_view cpu_level_name(CpuLevel level);  // "reference", "portable", "avx2", "avx512", ...

// Every level that this CPU runs, ascending.
std::vector<CpuLevel> supported_cpu_levels();

// The level in use: the fastest supported (where there are no tiles, Intel's cores take four times
// as long for a pair product as for a float32 product, AMD's the same time), unless the environment
// variable KVLAB_CPU_LEVEL names another (environment.h) or set_cpu_level was called.
CpuLevel cpu_level();

// For tests and benchmarks; the level must be a supported one. Not while a kernel runs.
void set_cpu_level(CpuLevel level);

}  // namespace kvlab
