#include "benchmarks/registry.h"

#include <fmt/format.h>

#include "benchmarks/longbench/longbench_benchmark.h"
#include "benchmarks/ruler/needle_grid.h"
#include "benchmarks/ruler/ruler_benchmark.h"
#include "harness/base/status.h"

namespace kvlab {

const std::vector<const Benchmark*>& benchmarks() {
  static const RulerBenchmark ruler;
  static const LongBenchBenchmark longbench;
  static const NeedleGridBenchmark needle_grid;
  static const std::vector<const Benchmark*> all = {
      &ruler,
      &longbench,
      &needle_grid,
  };
  return all;
}

absl::StatusOr<const Benchmark*> find_benchmark(std::string_view name) {
  std::string known;
  for (const Benchmark* benchmark : benchmarks()) {
    if (benchmark->name() == name) {
      return benchmark;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", benchmark->name());
  }
  return invalid_argument("unknown benchmark '{}'; the benchmarks are {}", name, known);
}

}  // namespace kvlab
