// Greedy decoding of a batch of arms: all caches of a sample, each with its own length, in one pass
// over the weights a step. A reply does not depend on which other arms ran beside it.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "harness/cache/kv_cache.h"
#include "harness/model/causal_lm.h"

namespace kvlab {

enum class StopReason { kStopId, kMaxNewTokens };
std::string_view stop_reason_name(StopReason reason);  // "stop_id", "max_new_tokens"

struct ArmRequest {
  // Room for max_new_tokens more: the last token is not fed unless its query is wanted.
  KvCache cache;
  at::Tensor first_logits;     // [vocab_size] float32: the prompt's (or the question's) last logits
  int64_t max_new_tokens = 0;  // at least 1
  int64_t min_new_tokens = 0;  // stop ids can't be chosen before so many tokens
  std::vector<int32_t> stop_ids = {};
  bool capture_queries = false;  // one query row for every reply token, a stop id included
};

struct ArmReply {
  std::vector<int32_t> token_ids;  // a stop id that ended the reply is the last one
  StopReason stop_reason = StopReason::kMaxNewTokens;
  CapturedQueries queries;  // [num_heads, token_ids.size(), head_dim] a layer; empty unless wanted
  int64_t steps = 0;        // decoding steps this arm took part in
  int64_t arms_in_batch = 0;  // with itself, at the start
  double decode_s = 0;        // wall time from the batch's start to this arm's last step
  double decode_share_s = 0;  // its steps' times, each divided by the arms that shared it
};

struct GreedyOptions {
  // Called after every step with the steps done; false stops the batch with a Cancelled error.
  std::function<bool(int64_t steps)> on_step;
};

// The highest logit's id, the lowest among equals. NaN never wins; all NaN is an error.
absl::StatusOr<int32_t> argmax_token(const at::Tensor& logits);

// Replies in the order of the requests, whose caches are used up. Finished arms leave the batch.
absl::StatusOr<std::vector<ArmReply>> decode_greedy(CausalLm& model,
                                                    std::vector<ArmRequest> requests,
                                                    const GreedyOptions& options = {});

}  // namespace kvlab
