// Cells grouped into tables, rows, columns and tasks: the numbers behind a table of scores or a
// chart of them.
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reports/fields.h"
#include "reports/score_table.h"
#include "reports/statistics.h"

namespace kvlab {

// One task of one table cell.
struct TaskGroup {
  Moments scores;
  int64_t expected = 0;  // samples that some row of this table has
};

// One table cell: its tasks by code.
struct CellGroup {
  std::map<int32_t, TaskGroup> tasks;
};

struct TableGroup {
  FieldCodes key;                                           // -1 for rows, columns and the task
  std::map<FieldCodes, std::map<int32_t, CellGroup>> rows;  // row codes, column code
  std::map<int32_t, std::map<int32_t, int64_t>> expected;   // column code, task code: samples
  std::map<int32_t, std::set<int16_t>> metrics;             // column code
  std::set<int32_t> datasets;
  struct Failure {
    int32_t method;
    CellStatus status;
    std::string reason;
    auto operator<=>(const Failure&) const = default;
  };
  std::map<Failure, int64_t> failures;
};

// In the order of their keys.
std::vector<TableGroup> group_scores(const ScoreData& data, const FieldIndex& index,
                                     const ScoreTableOptions& options);

// The mean over a cell's tasks, and whether every expected sample of every task in its column is
// there. `tasks` is the column's TableGroup::expected.
struct CellMean {
  Estimate estimate;
  int64_t expected = 0;
  bool complete = false;
};
CellMean cell_mean(const CellGroup& cell, const std::map<int32_t, int64_t>& tasks);

}  // namespace kvlab
