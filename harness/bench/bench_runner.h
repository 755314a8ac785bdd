// Runs a bench file: every method, budget, length, form and number of arms, in rounds whose order
// is shuffled, so that a drift of the machine meets all of them alike.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/bench/bench_config.h"
#include "harness/bench/cost_model.h"
#include "harness/generation/policy_runner.h"
#include "harness/model/causal_lm.h"
#include "methods/eviction_policy.h"
#include "results/bench_data.h"

namespace kvlab {

// One thing to measure.
struct BenchCell {
  std::shared_ptr<const EvictionPolicy> policy;
  Setting method;
  std::optional<MethodCost> cost;  // none: measured without a prediction
  bool takes_budget = true;
  int64_t budget = 0;
  int64_t length = 0;
  int64_t arms = 1;
  BenchForm form = BenchForm::kShared;
};

class BenchObserver {
 public:
  virtual ~BenchObserver() = default;
  virtual absl::Status on_measurement(const BenchRecord& record) = 0;
  // Rounds of warming up are told too; their measurements are not.
  virtual void on_progress(int64_t done, int64_t total, const std::string& what) = 0;
  virtual bool keep_going() = 0;
};

class BenchRunner final {
 public:
  // Loads or makes the model; makes and checks every policy. The adapter "random" of lookahead_kv
  // stands for one of the paper's shape with untrained numbers.
  // `device`: what predictions are made for; none: there are no predicted times.
  static absl::StatusOr<std::unique_ptr<BenchRunner>> make(BenchConfig config,
                                                           std::optional<Device> device);
  ~BenchRunner();

  const std::vector<BenchCell>& cells() const { return cells_; }

  absl::Status run(BenchObserver& observer);

  // One measurement; errors of the method are in its status.
  BenchMeasurement measure(const BenchCell& cell);

 private:
  BenchRunner() = default;
  absl::Status make_cells();
  absl::StatusOr<BenchMeasurement> try_measure(const BenchCell& cell);
  std::vector<int32_t> prompt(int64_t length) const;
  void predict(const BenchCell& cell, BenchMeasurement& measurement) const;

  BenchConfig config_;
  std::optional<Device> device_;
  std::shared_ptr<CausalLm> model_;
  std::unique_ptr<DraftModels> drafts_;
  Setting model_setting_;
  std::vector<BenchCell> cells_;
  std::string random_adapter_;  // a temporary file
};

}  // namespace kvlab
