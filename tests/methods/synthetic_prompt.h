// A prompt state of random numbers, with everything a prefill can record.
#pragma once

#include <memory>

#include "harness/cache/prompt_state.h"
#include "harness/model/model_config.h"
#include "methods/eviction_policy.h"

namespace kvlab {

struct SyntheticShape {
  int64_t num_layers = 4;
  int64_t num_heads = 6;
  int64_t num_kv_heads = 2;
  int64_t head_dim = 16;
  int64_t prompt_len = 150;
  int64_t tail_queries = 70;
  uint64_t seed = 1;
  at::ScalarType dtype = at::kFloat;
};

ModelConfig synthetic_config(const SyntheticShape& shape);
std::shared_ptr<PromptState> synthetic_prompt(const SyntheticShape& shape);
Draft synthetic_draft(const SyntheticShape& shape, int64_t num_tokens);

}  // namespace kvlab
