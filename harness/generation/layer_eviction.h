// A prompt's prefill with eviction inside it, as a server would run one request: a layer is scored
// and compacted as soon as the whole prompt has gone through it, so that at most one layer's keys
// and values are there in full. The sweep's way, one finished prompt state for many arms, is
// policy_runner.h; both choose the same entries.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>

#include "harness/cache/kv_cache.h"
#include "harness/generation/policy_runner.h"
#include "harness/model/causal_lm.h"

namespace kvlab {

struct LayerEvictionOptions {
  int64_t chunk_size = 2048;   // prompt tokens a step of a layer
  int64_t max_new_tokens = 1;  // room in the cache
};

struct LayerEviction {
  KvCache cache;
  at::Tensor last_logits;  // [vocab_size] float32
  SelectionResult result;
  double total_s = 0;    // prefill with everything in it
  double compact_s = 0;  // of which gathering kept entries
  // Most bytes of keys, values and recorded queries at one time: a full layer and the compact ones.
  int64_t peak_cache_bytes = 0;
};

// Errors: the method has to see the whole prompt state (EvictionPolicy::check_by_layers), and those
// of prefill and selection.
absl::StatusOr<LayerEviction> prefill_and_evict(CausalLm& model, std::span<const int32_t> token_ids,
                                                const SelectionRequest& request,
                                                const LayerEvictionOptions& options);

// Bytes of what a layer of a prompt state holds: keys, values, recorded queries and statistics.
int64_t layer_bytes(const LayerState& layer);

}  // namespace kvlab
