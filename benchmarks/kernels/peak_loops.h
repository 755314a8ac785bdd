// The inner loops of a register-blocked GEMM without its memory accesses.
#pragma once

#include <cstdint>

namespace kvlab {

constexpr double kBf16FlopsPerStep = 24 * 64;
constexpr double kFp32FlopsPerStep = 24 * 32;
constexpr double kAvx2FlopsPerStep = 12 * 16;
constexpr double kTileFlopsPerStep = 4 * 2 * 16 * 16 * 32;

float bf16_peak_loop(int64_t steps);
float fp32_peak_loop(int64_t steps);
float avx2_peak_loop(int64_t steps);  // float32 with AVX2
float tile_peak_loop(int64_t steps);  // bfloat16 in tile registers

}  // namespace kvlab
