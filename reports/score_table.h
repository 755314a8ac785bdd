// Tables of mean scores: which fields make rows and columns, everything else is kept apart.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "reports/fields.h"
#include "reports/table.h"
#include "results/score_data.h"

namespace kvlab {

struct ScoreTableOptions {
  std::vector<Field> rows = {Field::kMethod, Field::kBudget};
  Field columns = Field::kTask;
  bool equal_samples = false;  // only samples that every row of a table has as ok
};

// One table for every combination of the fields that are neither rows nor columns; models,
// protocols, data sets, methods and budgets are never averaged over, tasks are (unweighted), with
// each task's samples averaged first. Two data sets of one task and length split a table.
//
// A cell whose row lacks samples that other rows of the table have is marked "(k/n)" and is never
// best; a mean over tasks with a sample missing is refused (kMissing). The full cache has no
// budget: its row stands first, in every table and column by budget.
//
// Errors: rows and columns share a field.
absl::StatusOr<std::vector<Table>> score_tables(const ScoreData& data,
                                                const ScoreTableOptions& options);

}  // namespace kvlab
