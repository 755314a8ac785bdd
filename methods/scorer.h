// One half of an eviction method: how much each prompt entry matters. The other half, sharing out
// the budget, is the same for all of them (scored_policy.h).
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "methods/eviction_policy.h"

namespace kvlab {

// Scores of one layer's entries, higher is better: [num_heads, prompt_len] (per query head) or
// [num_kv_heads, prompt_len], float32.
using LayerScores = std::function<absl::StatusOr<at::Tensor>(int64_t layer)>;

class Scorer {
 public:
  virtual ~Scorer() = default;

  // Refusal with a reason, as EvictionPolicy::check.
  virtual absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const {
    (void)model;
    (void)budget;
    return absl::OkStatus();
  }
  virtual PrefillNeeds needs() const { return {}; }
  virtual int64_t extra_positions() const { return 0; }
  virtual std::optional<std::string> label() const { return std::nullopt; }

  virtual absl::StatusOr<std::optional<DraftRequest>> draft_request(
      const SelectionInput& input) const {
    (void)input;
    return std::optional<DraftRequest>();
  }

  // As EvictionPolicy's.
  virtual absl::Status check_by_layers() const { return absl::OkStatus(); }
  virtual absl::StatusOr<AppendedRows> appended_rows(const ModelConfig& model) const {
    (void)model;
    return AppendedRows();
  }

  // What all layers share (learned rows, for one) is done here, the rest when a layer is asked for:
  // the layers of input.prompt may be there one at a time only. What `input` points to outlives the
  // returned function.
  virtual absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const = 0;
};

}  // namespace kvlab
