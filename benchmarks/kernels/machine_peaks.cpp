#include "benchmarks/kernels/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "benchmarks/kernels/peak_loops.h"
#include "harness/kernels/cpu_level.h"
#include "harness/kernels/parallel.h"

namespace kvlab {
namespace {

constexpr int kTries = 5;
constexpr int64_t kSteps = 4'000'000;
constexpr int64_t kReadFloats = int64_t{1} << 28;  // 1 GiB: more than any cache

// Best seconds of `kTries` runs of body(thread) on every thread at once.
template <typename Body>
double best_seconds(const Body& body) {
  double best = 1e9;
  for (int run = 0; run < kTries; ++run) {
    std::atomic<int> waiting{kernel_threads()};
    const auto start = std::chrono::steady_clock::now();
    parallel_for(kernel_threads(), [&](int64_t task, int) {
      // Holds the task until every thread has one, so that each thread gets exactly one.
      waiting.fetch_sub(1);
      while (waiting.load() > 0) {
      }
      body(task);
    });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::min(best, seconds.count());
  }
  return best;
}

float read_all(const float* data, int64_t size) {
  float lanes[64] = {};
  for (int64_t i = 0; i < size; i += 64) {
#pragma omp simd
    for (int64_t lane = 0; lane < 64; ++lane) {
      lanes[lane] += data[i + lane];
    }
  }
  return *std::max_element(lanes, lanes + 64);
}

MachinePeaks measure() {
  MachinePeaks peaks;
  const double threads = kernel_threads();
  std::vector<float> sink(kernel_threads());
#if defined(KVLAB_X86_64)
  const auto gflops = [&](float (*loop)(int64_t), double flops_per_step) {
    return threads * kSteps * flops_per_step /
           best_seconds([&](int64_t t) { sink[t] = loop(kSteps); }) / 1e9;
  };
  const CpuLevel best = supported_cpu_levels().back();
  if (best >= CpuLevel::kAvx512) {
    peaks.bf16_gflops = gflops(bf16_peak_loop, kBf16FlopsPerStep);
    peaks.fp32_gflops = gflops(fp32_peak_loop, kFp32FlopsPerStep);
  }
  if (best == CpuLevel::kAvx2) {
    peaks.fp32_gflops = gflops(avx2_peak_loop, kAvx2FlopsPerStep);
  }
  if (best == CpuLevel::kAmx) {
    peaks.tile_gflops = gflops(tile_peak_loop, kTileFlopsPerStep);
  }
#endif
  const std::vector<float> data(kReadFloats, 1.0F);
  const int64_t share = kReadFloats / kernel_threads() / 64 * 64;
  peaks.read_gbytes =
      threads * static_cast<double>(share * sizeof(float)) /
      best_seconds([&](int64_t t) { sink[t] += read_all(data.data() + t * share, share); }) / 1e9;
  // The loops' results are used, so that they cannot be left out.
  static std::atomic<float> used;
  used = *std::max_element(sink.begin(), sink.end());
  return peaks;
}

}  // namespace

const MachinePeaks& machine_peaks() {
  static const MachinePeaks peaks = measure();
  return peaks;
}

}  // namespace kvlab
