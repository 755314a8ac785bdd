#include "benchmarks/kernels/kernel_bench.h"

#include <fmt/format.h>

#include "benchmarks/kernels/machine_peaks.h"
#include "harness/base/allocator.h"
#include "harness/kernels/cpu_level.h"
#include "harness/kernels/parallel.h"

namespace kvlab {

void report_rates(benchmark::State& state, ElementType type, double flops, double bytes,
                  double seconds) {
  const MachinePeaks& peaks = machine_peaks();
  const double peak = peaks.gemm_gflops(type == ElementType::kBFloat16);
  state.counters["GFLOP/s"] = flops / seconds / 1e9;
  state.counters["GB/s"] = bytes / seconds / 1e9;
  if (peak > 0) {
    state.counters["%GEMM"] = 100 * flops / seconds / 1e9 / peak;
  }
  state.counters["%read"] = 100 * bytes / seconds / 1e9 / peaks.read_gbytes;
}

}  // namespace kvlab

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  const kvlab::MachinePeaks& peaks = kvlab::machine_peaks();
  benchmark::AddCustomContext("kernel level", std::string(cpu_level_name(kvlab::cpu_level())));
  benchmark::AddCustomContext("malloc", kvlab::allocator_name());
  benchmark::AddCustomContext("kernel threads", std::to_string(kvlab::kernel_threads()));
  benchmark::AddCustomContext("peak bf16 GFLOP/s", fmt::format("{:.0f}", peaks.bf16_gflops));
  benchmark::AddCustomContext("peak bf16 tiles GFLOP/s", fmt::format("{:.0f}", peaks.tile_gflops));
  benchmark::AddCustomContext("peak fp32 GFLOP/s", fmt::format("{:.0f}", peaks.fp32_gflops));
  benchmark::AddCustomContext("peak read GB/s", fmt::format("{:.1f}", peaks.read_gbytes));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
