// Adam with warm-up, cosine decay and gradient clipping over an adapter's tensors, with a state
// that can be saved and put back. The one place that needs LibTorch's optimizers.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kvlab {

struct OptimizerOptions {
  double learning_rate = 1e-3;
  int64_t warmup_steps = 10;
  int64_t total_steps = 1;
  double clip = 1.0;
};

// Learning rate of step `step` (from 0): linear up to the peak, then a half cosine down to 0.
double learning_rate_at(const OptimizerOptions& options, int64_t step);

class AdapterOptimizer final {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  AdapterOptimizer(NamedTensors parameters, const OptimizerOptions& options);
  ~AdapterOptimizer();

  struct StepInfo {
    double learning_rate = 0;
    double gradient_norm = 0;  // before clipping
  };
  // One update with the gradients that have gathered; clears them.
  StepInfo step();
  int64_t steps_done() const { return steps_done_; }

  // Parameters, both moments and the step count: enough to go on as if never stopped.
  absl::Status save(const std::filesystem::path& path,
                    std::map<std::string, std::string, std::less<>> metadata) const;
  // Errors: another set of parameters. Returns the metadata that was saved beside.
  absl::StatusOr<std::map<std::string, std::string, std::less<>>> restore(
      const std::filesystem::path& path);

 private:
  struct Impl;
  NamedTensors parameters_;
  OptimizerOptions options_;
  int64_t steps_done_ = 0;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvlab
