// The one interface the harness sees of an eviction method.
//
// A method is asked three things, in this order: what it needs from prefill; which draft, if any,
// must be decoded before it can choose (all arms' drafts run in one batch); and, with that at
// hand, which prompt entries to keep.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/cache/prompt_state.h"
#include "harness/cache/selection.h"
#include "harness/model/causal_lm.h"
#include "harness/model/model_config.h"

namespace kvlab {

// Entries per layer and KV head that a sample may keep, already resolved from tokens or a share of
// the prompt.
struct Budget {
  int64_t entries = 0;
};

// Reply tokens that must be decoded, greedily, with their queries, before the method can select.
//
// A draft of n tokens is the first n reply tokens, each run through the model: n query rows at
// positions prompt_len, prompt_len + 1, ... It ends before a stop id, but has always one token, the
// first (a stop id or not), so that there is a row to ask.
struct DraftRequest {
  enum class Cache { kFull, kSelection };
  Cache cache = Cache::kSelection;
  Selection selection;          // for kSelection
  int64_t num_tokens = 0;       // at most; 0: the whole reply, the sample's max_new_tokens
  std::string draft_model_dir;  // SpecKV: another model writes the draft, the target reads it
  int64_t draft_layers = 0;     // SpecKV on the model itself: its first so many layers; 0: all
};

struct Draft {
  std::vector<int32_t> token_ids;
  CapturedQueries queries;  // of the target model; keys are there
  bool stopped = false;     // a stop id came next, or is the only token
};

struct SelectionInput {
  const PromptState* prompt = nullptr;
  const ModelConfig* config = nullptr;  // of the model that made the prompt state
  Budget budget;
  const Draft* draft = nullptr;  // when draft_request() asked for one
  CausalLm* model = nullptr;     // runs the method's appended rows where the next is null
  const CapturedQueries* appended = nullptr;  // what the method's appended_rows() left
};

// Time spent inside select(), in seconds.
struct SelectionCost {
  double query_s = 0;   // making queries (learned rows)
  double score_s = 0;   // attention mass, pooling
  double choose_s = 0;  // top-k, allocation
};

struct SelectionResult {
  Selection selection;
  SelectionCost cost;
};

// Kept positions of one layer's KV heads, as Selection has them. Layers are asked for in order,
// once each. `cost` is added to.
using LayerSelector = std::function<absl::StatusOr<std::vector<std::vector<int32_t>>>(
    int64_t layer, SelectionCost& cost)>;

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  virtual const std::string& name() const = 0;      // "snapkv"
  virtual const Json& resolved_params() const = 0;  // every parameter, defaults filled in

  // The name for tables; longer where the name alone would mislead (SpecKV drafting by itself).
  virtual std::string label() const { return name(); }

  // Refusal with a reason when the method can't run with this model or budget. Called at plan time.
  virtual absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const = 0;

  virtual PrefillNeeds needs() const = 0;

  // Positions beyond the prompt that the method uses before decoding (drafts, lookahead rows).
  virtual int64_t extra_positions() const { return 0; }

  // Asked with input.draft still null.
  virtual absl::StatusOr<std::optional<DraftRequest>> draft_request(
      const SelectionInput& input) const {
    (void)input;
    return std::optional<DraftRequest>();
  }

  // Rows that run behind the prompt, in its prefill or after; they come back in
  // SelectionInput::appended.
  virtual absl::StatusOr<AppendedRows> appended_rows(const ModelConfig& model) const {
    (void)model;
    return AppendedRows();
  }

  // A budget at or above the prompt length keeps everything, for every method (callers need not
  // special-case it).
  virtual absl::StatusOr<SelectionResult> select(const SelectionInput& input) const = 0;

  // Layer by layer: a layer is chosen from as soon as the prompt has gone through it
  // (CausalLm::prefill_by_layers), so that it can be evicted at once. The selections are those of
  // select().

  // Refusal with a reason where the method must see the whole prompt state first.
  virtual absl::Status check_by_layers() const = 0;

  // What `input` points to outlives the selector, and of input.prompt's layers only the one asked
  // for must be there. Only where check_by_layers() is OK.
  virtual absl::StatusOr<LayerSelector> select_by_layers(const SelectionInput& input) const = 0;
};

}  // namespace kvlab
