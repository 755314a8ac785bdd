// LongBench replies of a database as prediction files in LongBench's own layout, for its eval.py
// and for `kvlab score longbench`.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <vector>

#include "results/sqlite.h"

namespace kvlab {

// Writes `out`/MODEL/PROTOCOL/METHOD-BUDGET/TASK.jsonl with lines of pred, answers, all_classes and
// length, samples in their order; methods that share a label get a piece of their hash. Returns the
// files. Errors: no LongBench replies; `out` exists and is not empty; a file cannot be written.
absl::StatusOr<std::vector<std::filesystem::path>> export_longbench_predictions(
    const Database& db, const std::filesystem::path& out);

}  // namespace kvlab
