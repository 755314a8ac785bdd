// What a training sample's prompt and reply leave behind. None of it depends on what is trained, so
// it can be kept on disk: every later pass, and every ablation on the same prompts, then runs the
// lookahead rows only.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <vector>

#include "harness/model/causal_lm.h"
#include "methods/lookahead_kv/training/lookahead_pass.h"
#include "methods/lookahead_kv/training/sample_set.h"

namespace kvlab {

struct FrozenPass {
  std::vector<PromptLayer> prompt;  // of every layer
  std::vector<at::Tensor> targets;  // of every layer, [num_heads, prompt_len]; attention_target.h
};

// Runs prompt and reply without gradient. Targets are computed in `target_dtype`.
absl::StatusOr<FrozenPass> run_frozen_pass(CausalLm& base, const TrainingSample& sample,
                                           at::ScalarType target_dtype);

// Passes of one model, kept below a folder where one is named: about 23 KB a prompt token for
// SmolLM2. A file that cannot be read is made again.
class FrozenPasses final {
 public:
  // keep_in empty: nothing is kept. model_fingerprint: of the base's weights.
  FrozenPasses(CausalLm& base, std::filesystem::path keep_in, std::string model_fingerprint)
      : base_(base),
        keep_in_(std::move(keep_in)),
        model_fingerprint_(std::move(model_fingerprint)) {}

  absl::StatusOr<FrozenPass> get(const TrainingSample& sample, at::ScalarType target_dtype);

 private:
  CausalLm& base_;
  std::filesystem::path keep_in_;
  std::string model_fingerprint_;
};

}  // namespace kvlab
