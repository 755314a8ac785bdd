// Trains an adapter: one prefill of prompt and reply without gradient, then the lookahead rows with
// it, for every sample.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "methods/lookahead_kv/training/frozen_pass.h"
#include "methods/lookahead_kv/training/lookahead_pass.h"
#include "methods/lookahead_kv/training/recipe.h"
#include "methods/lookahead_kv/training/sample_set.h"

namespace kvlab {

struct TrainingStep {
  int64_t step = 0;  // from 1
  double loss = 0;   // mean over the batch of the paper's loss
  double learning_rate = 0;
  double gradient_norm = 0;
  double seconds = 0;
};

struct HeldOutEvaluation {
  int64_t step = 0;
  double loss = 0;
  std::vector<std::pair<int64_t, double>> recall;  // budget to mean recall
};

// Where a run reports to; see training_log.h for the one that writes SQLite.
class TrainingObserver {
 public:
  virtual ~TrainingObserver() = default;
  // A run that goes on has steps done.
  virtual void on_start(int64_t steps_done, int64_t total_steps) = 0;
  virtual absl::Status on_step(const TrainingStep& step) = 0;
  virtual absl::Status on_evaluation(const HeldOutEvaluation& evaluation) = 0;
};

// The loss of one sample, mean over layers and query heads, and with `backward` its gradient, times
// `weight`, added to the adapter's. `recall_budgets` may be empty.
struct SampleLoss {
  double loss = 0;
  std::vector<double> recall;  // per budget, mean over layers
};
SampleLoss sample_loss(const FrozenPass& pass, FrozenModel& frozen, const LookaheadAdapter& adapter,
                       bool backward, double weight, const std::vector<int64_t>& recall_budgets);
// The same with the pass run first.
absl::StatusOr<SampleLoss> sample_loss(CausalLm& base, FrozenModel& frozen,
                                       const LookaheadAdapter& adapter,
                                       const TrainingSample& sample, bool backward, double weight,
                                       const std::vector<int64_t>& recall_budgets);

struct TrainingOutcome {
  int64_t steps = 0;
  int64_t total_steps = 0;
  bool interrupted = false;
};

// Runs or goes on with a training run in `out_dir` (checkpoint.safetensors, adapter.safetensors).
// `deadline_s` seconds from now it stops at the next step with a checkpoint; 0: no limit.
absl::StatusOr<TrainingOutcome> train_adapter(const TrainingRecipe& recipe, FrozenPasses& passes,
                                              FrozenModel& frozen,
                                              const std::vector<TrainingSample>& samples,
                                              const std::string& data_hash,
                                              const std::filesystem::path& out_dir,
                                              double deadline_s, TrainingObserver& observer);

}  // namespace kvlab
