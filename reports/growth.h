// How what `kvlab bench` measured grows with the prompt's length and with the number of arms.
#pragma once

#include <vector>

#include "reports/charts.h"
#include "reports/table.h"
#include "results/bench_data.h"

namespace kvlab {

// How time and memory grow: the exponent of the prompt's length (at one arm) and of the number of
// arms (at one length), fitted to medians by least squares in logarithms, measured and predicted,
// for every method, budget and form with at least two points. All runs together; a table for each
// model, dtype and device.
std::vector<Table> growth_tables(const BenchData& data);

// The points behind them, logarithmic axes; a chart for each quantity of each table.
std::vector<Chart> growth_charts(const BenchData& data);

}  // namespace kvlab
