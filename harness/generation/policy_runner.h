// From a finished prompt state to the selections of many arms: drafts of all arms decode in one
// batch, equal ones only once; rows that methods append to the prompt run once for whoever asks for
// the same ones, and so does the whole full-cache reply.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "methods/eviction_policy.h"

namespace kvlab {

// Loads SpecKV's draft models when first asked for, and keeps them. Not thread-safe.
class DraftModels final {
 public:
  // model_dir, options: of the target, whose first layers may be the draft.
  DraftModels(std::filesystem::path model_dir, LoadOptions options)
      : model_dir_(std::move(model_dir)), options_(options) {}

  // draft_model_dir empty: the target's own first `layers` layers.
  absl::StatusOr<std::shared_ptr<CausalLm>> get(const std::string& draft_model_dir, int64_t layers);

 private:
  std::filesystem::path model_dir_;
  LoadOptions options_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<CausalLm>> loaded_;
};

// What prefill must record for all of them. Two methods that want query moments of different prompt
// tokens can't share a prefill: an error that names both.
absl::StatusOr<PrefillNeeds> combined_needs(std::span<const EvictionPolicy* const> policies);

struct SelectionRequest {
  const EvictionPolicy* policy = nullptr;
  Budget budget;
};

struct SelectionSettings {
  int64_t max_new_tokens = 1;           // of the sample: how long a whole reply gets
  int64_t min_new_tokens = 0;           // of the sample: a whole reply can't stop before
  std::vector<int32_t> stop_ids;        // end drafts and replies
  DraftModels* draft_models = nullptr;  // null: methods that need one are an error
  bool want_full_reply = false;         // decode it even if no method asks for it
  std::function<bool()> keep_going;     // asked after every decoding step; false cancels
};

struct SelectedArm {
  SelectionResult result;
  std::vector<int32_t> draft_ids;  // draft or reply tokens whose queries were asked
  double first_stage_s = 0;        // choosing the draft's cache
  double draft_s = 0;  // its share of the batch of drafts, a draft model's prefill and the
                       // target's pass over its tokens
};

struct SelectionBatch {
  std::vector<absl::StatusOr<SelectedArm>> arms;  // as the requests; one's error leaves the others
  // The greedy reply on the full cache, where it was decoded: what decode_greedy gives for it.
  std::optional<ArmReply> full_reply;
};

// The prompt state must have been made by `model`, with the needs of all policies. An error of the
// whole batch: interrupted, or decoding failed.
absl::StatusOr<SelectionBatch> select_entries(CausalLm& model,
                                              const std::shared_ptr<const PromptState>& prompt,
                                              std::span<const SelectionRequest> requests,
                                              const SelectionSettings& settings);

}  // namespace kvlab
