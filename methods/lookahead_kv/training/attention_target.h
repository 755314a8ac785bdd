// What the lookahead rows are trained to predict, and how far off they are.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace kvlab {

// Ground truth of a layer: the mean over reply rows of their softmax weights on prompt keys,
// divided by its sum. Reply rows see the prompt and the reply up to themselves.
// reply_queries: [num_heads, reply_len, head_dim]; prompt_keys: [num_kv_heads, prompt_len,
// head_dim]; reply_keys: [num_kv_heads, reply_len, head_dim]. Computed in `dtype`, in blocks of
// `block_rows` reply rows. Returns [num_heads, prompt_len].
at::Tensor attention_target(const at::Tensor& reply_queries, const at::Tensor& prompt_keys,
                            const at::Tensor& reply_keys, at::ScalarType dtype,
                            int64_t block_rows = 64);

// Sum over heads of KL(target || scores / sum(scores)): the layer's part of the paper's loss before
// the mean over layers and heads. Differentiable in `scores`.
at::Tensor attention_divergence(const at::Tensor& target, const at::Tensor& scores);

// Share of the true attention mass that the `budget` best entries by `scores` hold, relative to the
// best possible `budget` entries; both as the mean over the query heads of a KV group. The mean
// over KV heads.
double attention_recall(const at::Tensor& target, const at::Tensor& scores, int64_t num_kv_heads,
                        int64_t budget);

}  // namespace kvlab
