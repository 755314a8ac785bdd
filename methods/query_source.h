// Whose queries are asked how much they look at each prompt entry.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "methods/eviction_policy.h"

namespace kvlab {

// One layer's query rows. Row r sees the prompt keys first_visible[r] <= key < visible[r] and the
// first extra_visible[r] extra keys, which take their part of the softmax but are not scored.
struct QueryRows {
  at::Tensor queries;     // [num_heads, num_rows, head_dim], after rotary embedding
  at::Tensor extra_keys;  // [num_kv_heads, num_extra, head_dim]; undefined: none
  std::vector<int64_t> first_visible;
  std::vector<int64_t> visible;
  std::vector<int64_t> extra_visible;
  // [num_heads, num_rows] float32: the logarithm of each row's softmax denominator over prompt and
  // extra keys, where it is known and every row sees every prompt key.
  at::Tensor logsumexp;

  int64_t num_rows() const { return queries.size(1); }
};

// The rows of a layer, when it is asked for.
using LayerRows = std::function<QueryRows(int64_t layer)>;

class QuerySource {
 public:
  virtual ~QuerySource() = default;
  virtual absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const {
    (void)model;
    (void)budget;
    return absl::OkStatus();
  }
  virtual PrefillNeeds needs() const = 0;
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

  // What `input` points to outlives the returned function.
  virtual absl::StatusOr<LayerRows> rows(const SelectionInput& input) const = 0;
};

// The last `num_rows` prompt tokens (SnapKV; TOVA with one row), causal among themselves.
std::unique_ptr<QuerySource> make_tail_source(int64_t num_rows);

struct DraftSourceOptions {
  int64_t tail_rows = 0;     // prompt tokens asked before the draft's (LAQ++, SpecKV)
  int64_t draft_tokens = 0;  // at most; 0: the whole reply
  bool is_reply = false;     // the draft stands for the model's own reply: the oracle
  // The draft's own keys take their part of the softmax, causally.
  bool own_keys = false;
  // The released LAQ code masks as if the rows were the last rows of the prompt.
  bool mask_as_prompt = false;
};

// A draft decoded on the cache that `first_stage` leaves (LAQ). Its budget is
// `first_stage_budget`, or where 0 the method's own.
std::unique_ptr<QuerySource> make_staged_draft_source(const DraftSourceOptions& options,
                                                      std::unique_ptr<EvictionPolicy> first_stage,
                                                      int64_t first_stage_budget);

// A draft decoded on the full cache, by the model itself, by its
// first layers, or by another model (SpecKV).
struct DraftModel {
  std::string model_dir;  // empty: the model itself
  int64_t layers = 0;     // of the model itself; 0: all
};
std::unique_ptr<QuerySource> make_full_draft_source(const DraftSourceOptions& options,
                                                    const DraftModel& draft_model);

// Rows of the prompt's tail followed by rows after the prompt; `after` may be null, and outlives
// the returned function. Causal, with the model's sliding window. Shared by every source.
LayerRows tail_and_following_rows(const SelectionInput& input, int64_t tail_rows,
                                  const CapturedQueries* after, bool own_keys, bool mask_as_prompt);

}  // namespace kvlab
