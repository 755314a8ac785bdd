// What `kvlab bench` measured: times and memory of methods, beside what arithmetic predicts.
#pragma once

#include <vector>

#include "reports/table.h"
#include "results/bench_data.h"

namespace kvlab {

// Two tables for each run, model, dtype, device, prompt length and number of arms: measured cost
// (medians with distribution-free 95 % intervals over repetitions), and measured beside predicted.
// Overhead is the time to the first token beyond the full cache's of the same round.
std::vector<Table> bench_tables(const BenchData& data);

}  // namespace kvlab
