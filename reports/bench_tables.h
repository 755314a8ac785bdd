// What `kvlab bench` measured: times and memory of methods, beside what arithmetic predicts.
#pragma once

#include <string>
#include <vector>

#include "reports/charts.h"
#include "reports/table.h"
#include "results/bench_data.h"

namespace kvlab {

// Two tables for each run, model, prompt length and number of arms: measured cost (medians with
// distribution-free 95 % intervals over repetitions), and measured beside predicted. Overhead is
// the time to the first token beyond the full cache's of the same round.
std::vector<Table> bench_tables(const BenchData& data);

// How time and memory grow: the exponent of the prompt's length (at one arm) and of the number of
// arms (at one length), fitted to medians by least squares in logarithms, measured and predicted,
// for every method, budget and form with at least two points. All runs together.
std::vector<Table> growth_tables(const BenchData& data);

// The points behind them, logarithmic axes.
std::vector<Chart> growth_charts(const BenchData& data);

}  // namespace kvlab
