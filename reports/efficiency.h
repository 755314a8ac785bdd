// What methods cost: medians over samples of the times and sizes that sweeps record.
#pragma once

#include <vector>

#include "reports/fields.h"
#include "reports/table.h"
#include "results/timing_data.h"

namespace kvlab {

// One table for every benchmark, model, protocol, question handling and length: rows are methods
// and budgets. `costs` belongs to `data`.
std::vector<Table> efficiency_tables(const ScoreData& data, const std::vector<CellCost>& costs);

// Median milliseconds between prefill and the first decoded token for each method and budget of a
// table: what the charts draw. Keys: data set and task are -1.
std::map<FieldCodes, double> median_eviction_ms(const ScoreData& data, const FieldIndex& index,
                                                const std::vector<CellCost>& costs);

}  // namespace kvlab
