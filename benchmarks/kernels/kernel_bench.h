// What the kernel benchmarks share.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "harness/kernels/element.h"

namespace kvlab {

// Random normal elements.
inline std::vector<char> random_elements(ElementType type, int64_t size, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<char> bytes(size * element_size(type));
  // A short run of random numbers, repeated: filling takes longer than the kernels otherwise.
  std::vector<float> block(std::min<int64_t>(size, 65521));
  std::normal_distribution<float> normal;
  for (float& value : block) {
    value = normal(random);
  }
  for (int64_t i = 0; i < size; ++i) {
    const float value = block[i % block.size()];
    if (type == ElementType::kFloat32) {
      reinterpret_cast<float*>(bytes.data())[i] = value;
    } else {
      reinterpret_cast<BFloat16*>(bytes.data())[i] = to_bfloat16(value);
    }
  }
  return bytes;
}

// Runs `body` in the benchmark's loop and adds GFLOP/s and GB/s, each also in percent of the
// machine's own peak; `flops` and `bytes` are of one run.
void report_rates(benchmark::State& state, ElementType type, double flops, double bytes,
                  double seconds);
template <typename Body>
void measure(benchmark::State& state, ElementType type, double flops, double bytes,
             const Body& body) {
  body();  // warm caches and scratch memory
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  report_rates(state, type, flops, bytes,
               seconds.count() / static_cast<double>(state.iterations()));
}

}  // namespace kvlab
