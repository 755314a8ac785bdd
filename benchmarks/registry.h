// Every benchmark by name. A new one is one file and one line in registry.cpp.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>
#include <vector>

#include "benchmarks/benchmark.h"

namespace kvlab {

const std::vector<const Benchmark*>& benchmarks();

// Unknown names are an error that lists the known ones.
absl::StatusOr<const Benchmark*> find_benchmark(std::string_view name);

}  // namespace kvlab
