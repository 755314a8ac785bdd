// Charts as Vega-Lite specifications: plain JSON with their data inside, useful by themselves.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "harness/base/json.h"
#include "results/timing_data.h"

namespace kvlab {

struct Chart {
  std::string name;   // a file name: "score_by_budget_1"
  std::string title;  // foreign text in it
  std::string kind;   // heading it stands under
  Json spec;
};

// Mean score with its interval against budget, one chart for each table of that shape with two or
// more budgets. Means with missing samples are left out.
std::vector<Chart> score_by_budget_charts(const ScoreData& data);
// The same against prompt length.
std::vector<Chart> score_by_length_charts(const ScoreData& data);
// Depth against length, for samples whose `extra` has a number "depth": one panel for each method
// and budget. `data` must have been loaded with extra.
std::vector<Chart> needle_charts(const ScoreData& data);
// Median eviction time against mean score, one point for each method and budget.
std::vector<Chart> cost_charts(const ScoreData& data, const std::vector<CellCost>& costs);
// Which stretches of the prompt every layer kept, one panel for each method, for the sample with
// most stored selections (or the one named): empty where no selections are stored.
absl::StatusOr<std::vector<Chart>> retained_charts(const Database& db, const ScoreData& data,
                                                   const std::string& sample);

}  // namespace kvlab
