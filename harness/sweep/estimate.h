// How long a planned sweep takes on this machine, by a short trial of its model.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <string>

#include "harness/sweep/plan.h"

namespace kvlab {

// Seconds for every cell that is not in `stored`, if no reply stops early; the methods' own work
// (scores, drafts) is left out. Loads each model and runs the start of its first prompt (at most
// 1,024 tokens) and a few decoding steps. Errors: the model can't be loaded or run.
absl::StatusOr<double> estimate_seconds(const SweepPlan& plan,
                                        const absl::flat_hash_set<std::string>& stored);

// Bytes of the largest model's weights as they will be held: stored as the sweep's dtype, or
// converted to it.
absl::StatusOr<int64_t> weight_bytes(const SweepPlan& plan);

}  // namespace kvlab
