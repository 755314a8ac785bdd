// Runs a plan: one prefill a sample, shared by all its arms, all arms decoded in one batch, one
// transaction a sample.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/clock.h"
#include "harness/generation/policy_runner.h"
#include "harness/model/causal_lm.h"
#include "harness/sweep/plan.h"
#include "harness/text/prompt_builder.h"
#include "results/store.h"

namespace kvlab {

struct RunOptions {
  bool retry_failed = false;
  double max_time_s = 0;  // stop before the next sample after so long; 0: no limit
};

// What a run tells whoever watches.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void on_start(const PlanSummary& summary) = 0;
  // `units` of PlanSummary's work are done.
  virtual void on_sample(double units, std::string_view what) = 0;
  virtual void on_message(std::string_view text) = 0;
};

struct RunOutcome {
  int64_t samples = 0;
  int64_t cells = 0;
  int64_t failed = 0;
  int64_t skipped = 0;
  bool interrupted = false;
  bool out_of_time = false;
};

// Work of one sample with so many arms, in the progress line's unit.
double sample_work(int64_t prompt_tokens, int64_t max_new_tokens, int64_t arms);

class SweepRunner final {
 public:
  SweepRunner(const SweepPlan& plan, ResultStore& store, const RunOptions& options,
              RunObserver& observer)
      : plan_(plan), store_(store), options_(options), observer_(observer) {}

  // The store must have a run begun. Errors end the run: the store can't be written, a model can't
  // be loaded, or the full cache's scores leave their sanity band. A failing cell does not.
  absl::StatusOr<RunOutcome> run();

 private:
  struct Cell {
    const PlannedArm* planned;
    const Arm* arm;
    ResultRecord record;
  };

  absl::Status run_model(const ModelPlan& model);
  absl::Status run_sample(const ModelPlan& model, const PlannedSample& planned, CausalLm& lm,
                          DraftModels& drafts);
  // Cells that share a prefill; on failure, each gets another try of its own.
  absl::Status run_cells(const ModelPlan& model, const PlannedSample& planned,
                         const BuiltPrompt& prompt, CausalLm& lm, DraftModels& drafts,
                         const std::vector<Cell*>& cells);
  absl::Status try_cells(const ModelPlan& model, const PlannedSample& planned,
                         const BuiltPrompt& prompt, CausalLm& lm, DraftModels& drafts,
                         const std::vector<Cell*>& cells);
  // Judges the mean of a task's first full-cache scores of this run, once, by the sweep's band.
  absl::Status check_sanity(const ModelPlan& model, const PlannedSample& planned,
                            const std::vector<Cell>& cells);

  const SweepPlan& plan_;
  ResultStore& store_;
  RunOptions options_;
  RunObserver& observer_;
  RunOutcome outcome_;
  absl::flat_hash_set<std::string> stored_;
  Clock::time_point start_;
  // Full-cache scores by model, benchmark, task, length and what the prefill sees.
  std::map<std::string, std::vector<double>> full_scores_;
};

}  // namespace kvlab
