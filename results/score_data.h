// The scores of a database in memory, small enough for a million cells: entities once, cells as
// indices into them. What every report and comparison starts from.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "results/record.h"
#include "results/sqlite.h"

namespace kvlab {

struct StoredSetting {
  std::string name;
  std::string label;
  Json json;
};

struct StoredSample {
  std::string benchmark;
  std::string dataset;
  std::string key;
  std::string task;
  int64_t length = 0;
  int64_t index = 0;
  Json extra;  // only when asked for
};

struct ScoreData {
  std::vector<StoredSetting> models, protocols, methods;
  std::vector<StoredSample> samples;
  struct Prompt {
    int32_t sample, model, protocol;
    int64_t tokens;
  };
  std::vector<Prompt> prompts;
  std::vector<std::string> budgets;  // "full", "128", "12.5%", in the order tables show them
  std::vector<std::string> metrics;
  std::vector<std::string> task_order;  // tasks in the order tables show them; others follow

  struct Cell {
    int64_t row_id;  // results.id
    double score;    // 0 unless ok
    int32_t prompt;
    int32_t method;
    int16_t budget;
    int16_t metric;  // -1 unless ok
    CellStatus status;
    bool question_aware;
  };
  std::vector<Cell> cells;  // grouped by prompt, methods in the order they were first stored
  absl::flat_hash_map<int64_t, std::string> reasons;  // by row_id, of cells that are not ok
};

// Errors: damaged rows (unknown ids, JSON that does not parse).
absl::StatusOr<ScoreData> load_scores(const Database& db, bool with_extra = false);

// Order of budgets in tables: "full", then tokens ascending, then shares ascending.
bool budget_before(const std::string& a, const std::string& b);

}  // namespace kvlab
