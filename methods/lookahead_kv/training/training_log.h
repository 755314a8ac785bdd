// A training run's numbers in SQLite, for charts and for comparing runs.
//
//   steps(step, loss, learning_rate, gradient_norm, seconds, finished)
//   evaluations(step, loss), recall(step, budget, recall)
//   facts(name, value): recipe, data, adapter
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <string>

#include "methods/lookahead_kv/training/trainer.h"
#include "results/sqlite.h"

namespace kvlab {

class TrainingLog final {
 public:
  static absl::StatusOr<std::unique_ptr<TrainingLog>> open(const std::filesystem::path& path);

  absl::Status write_fact(const std::string& name, const std::string& value);
  absl::Status write(const TrainingStep& step);
  absl::Status write(const HeldOutEvaluation& evaluation);

 private:
  explicit TrainingLog(std::unique_ptr<Database> db) : db_(std::move(db)) {}

  std::unique_ptr<Database> db_;
};

// A Vega-Lite chart of loss, held-out loss and recall over steps, as stored in the log at `path`.
absl::StatusOr<Json> training_chart(const std::filesystem::path& path);

}  // namespace kvlab
