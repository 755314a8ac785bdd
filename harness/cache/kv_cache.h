// One arm's cache: ragged per layer and KV head. Logical positions and slots are kept apart: the
// next token's position is the number of tokens seen, whatever was evicted.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "harness/cache/prompt_state.h"
#include "harness/cache/selection.h"

namespace kvlab {

class KvCache final {
 public:
  // Aliases the whole prompt (no copy); new tokens get storage of their own.
  static KvCache full(std::shared_ptr<const PromptState> prompt, int64_t max_new_tokens);

  // Gathers the selected entries; everything else is free to be released.
  static KvCache compact(const PromptState& prompt, const Selection& selection,
                         int64_t max_new_tokens);

  // A compact cache that grows layer by layer, as a prefill by layers finishes them: add_layer()
  // once for each, in order, before anything else.
  static KvCache start(int64_t prompt_len, int64_t max_new_tokens);
  // Gathers the kept positions of each KV head (as in Selection) of `layer`.
  void add_layer(const LayerState& layer, std::vector<std::vector<int32_t>> kept);

  // One KV head of one layer: two runs of entries, each [len, head_dim] contiguous.
  struct HeadView {
    const void* prompt_keys;
    const void* prompt_values;
    int64_t prompt_len;  // entries kept
    void* new_keys;      // capacity max_new_tokens
    void* new_values;
  };
  const HeadView& head(int64_t layer, int64_t kv_head) const {
    return views_[static_cast<size_t>(layer)][static_cast<size_t>(kv_head)];
  }

  // The head's first prompt entry whose logical position is `position` or later, counted from its
  // first entry: where a sliding window begins.
  int64_t first_entry_from(int64_t layer, int64_t kv_head, int64_t position) const;

  int64_t next_position() const { return next_position_; }  // logical position of the next token
  int64_t num_new() const { return num_new_; }              // tokens appended since the prompt
  int64_t max_new_tokens() const { return max_new_tokens_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }

  // Entries held for the prompt, over all layers and heads, as measured in the storage.
  int64_t prompt_entries() const;
  // Bytes of the prompt entries' keys and values.
  int64_t prompt_bytes() const;
  // The same and the room for the reply, used or not.
  int64_t bytes() const;

  // After every layer has written row `num_new()` of each new_keys/new_values.
  void advance(int64_t tokens);

  // Tensors behind the views, for device code: per layer, per head [len, head_dim].
  const std::vector<std::vector<at::Tensor>>& prompt_keys() const { return prompt_keys_; }
  const std::vector<std::vector<at::Tensor>>& prompt_values() const { return prompt_values_; }
  const std::vector<at::Tensor>& new_keys() const { return new_keys_; }      // [kv_heads, cap, d]
  const std::vector<at::Tensor>& new_values() const { return new_values_; }  // per layer

 private:
  KvCache() = default;
  void add_new_storage(const LayerState& layer);
  void add_views();  // of the layer added last

  std::shared_ptr<const PromptState> keep_alive_;
  std::vector<std::vector<at::Tensor>> prompt_keys_;
  std::vector<std::vector<at::Tensor>> prompt_values_;
  std::vector<std::vector<std::vector<int32_t>>> kept_;  // logical positions; empty: all
  std::vector<at::Tensor> new_keys_;
  std::vector<at::Tensor> new_values_;
  std::vector<std::vector<HeadView>> views_;  // kept: a step asks for every head of every arm
  int64_t next_position_ = 0;
  int64_t num_new_ = 0;
  int64_t max_new_tokens_ = 0;
  at::ScalarType dtype_ = at::kFloat;
  at::Device device_ = at::kCPU;
};

}  // namespace kvlab
