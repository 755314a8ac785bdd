// LongBench replies of a database as prediction files in LongBench's own layout, for its eval.py
// and for `kvlab score longbench`.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "results/sqlite.h"

namespace kvlab {

struct ExportedPredictions {
  std::vector<std::filesystem::path> files;
  int64_t failed = 0;  // cells that failed: their samples are in no file
};

// Writes `out`/MODEL/PROTOCOL/METHOD-BUDGET/TASK.jsonl with lines of pred, answers, all_classes and
// length, samples in their order; experiments that share a folder's name get a piece of a hash.
// Errors: no LongBench replies; `out` exists and is not empty; a file cannot be written.
absl::StatusOr<ExportedPredictions> export_longbench_predictions(const Database& db,
                                                                 const std::filesystem::path& out);

}  // namespace kvlab
