// What one prefill leaves behind: shared by every method and budget, changed by none.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

namespace kvlab {

// What the prefill must record besides keys and values; the union of what the sweep's methods
// declare.
struct PrefillNeeds {
  int64_t tail_queries = 0;     // queries of the last so many prompt tokens
  bool attention_sums = false;  // H2O: attention every key received, over all prompt queries
  bool query_moments = false;   // ExpectedAttention: mean and covariance of queries before rotary
  int64_t moments_from = 0;     // the moments leave out the prompt tokens before this one
};

struct LayerState {
  at::Tensor keys;            // [num_kv_heads, prompt_len, head_dim], after rotary embedding
  at::Tensor values;          // [num_kv_heads, prompt_len, head_dim]
  at::Tensor tail_queries;    // [num_heads, min(tail, prompt_len), head_dim], after rotary
  at::Tensor attention_sums;  // [num_heads, prompt_len] float32; undefined unless asked for
  // Before rotary, after a query norm; undefined unless asked for, or when no token is left.
  at::Tensor query_mean;        // [num_heads, head_dim] float32
  at::Tensor query_covariance;  // [num_heads, head_dim, head_dim] float32
};

struct PromptState {
  std::vector<int32_t> token_ids;  // prompt_len of them
  std::vector<LayerState> layers;
  at::Tensor last_logits;  // [vocab_size] float32, of the last prompt token

  int64_t prompt_len() const { return static_cast<int64_t>(token_ids.size()); }
};

// Post-rotary queries that a draft, a reply or learned rows asked, per layer:
// [num_heads, num_rows, head_dim]. `keys` are the rows' own keys, [num_kv_heads, num_rows,
// head_dim]; undefined where they are not wanted. `logsumexp`, [num_heads, num_rows] float32, are
// the logarithms of the rows' softmax denominators over the prompt and the rows up to their own;
// undefined where nobody computed them.
struct CapturedQueries {
  std::vector<at::Tensor> queries;
  std::vector<at::Tensor> keys;
  std::vector<at::Tensor> logsumexp;
};

}  // namespace kvlab
