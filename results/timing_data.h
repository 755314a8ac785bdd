// Timings and sizes of the cells of a ScoreData.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "results/score_data.h"

namespace kvlab {

struct CellCost {
  Timings timings;
  int64_t draft_tokens = 0;
  int64_t cache_bytes = 0;
  double kept_mean = 0;  // entries per layer and KV head

  // Everything between prefill and the first decoded token.
  double eviction_s() const {
    return timings.query_s + timings.score_s + timings.choose_s + timings.draft_s +
           timings.compact_s;
  }
};

// One for each of data.cells, in its order; zeros where the cell is not ok.
absl::StatusOr<std::vector<CellCost>> load_costs(const Database& db, const ScoreData& data);

}  // namespace kvlab
