// The tables and pages that `kvlab report` makes from a database.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "reports/charts.h"
#include "reports/score_table.h"

namespace kvlab {

// Named choices of rows, columns and filters; "" is the plain table of rows and columns.
//   ruler-by-length      RULER only: methods by prompt length, mean over tasks, a table a budget
//   longbench-by-budget  LongBench only: methods by budget, mean over tasks
//   efficiency           what methods cost, instead of scores
// Unknown names are an error that lists the known ones; so is a layout whose benchmark the database
// does not have.
absl::StatusOr<std::vector<Table>> layout_tables(std::string_view layout, const Database& db,
                                                 ScoreData data, const ScoreTableOptions& options);

// Every chart that the data allows, and notes on those left out ("12 more charts: ...").
struct ChartSet {
  std::vector<Chart> charts;
  std::vector<std::string> notes;
};
absl::StatusOr<ChartSet> all_charts(const Database& db, const ScoreData& data,
                                    const std::string& sample);

}  // namespace kvlab
