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

// KL(target || scores / sum(scores)) of every head, [num_heads]. Their mean over layers and heads
// is the paper's loss. Differentiable in `scores`.
at::Tensor attention_divergence(const at::Tensor& target, const at::Tensor& scores);

// What training minimises. The defaults are the paper's.
struct TrainingLoss {
  // Times the divergence over the entries behind the sinks, both sides divided by their sums there,
  // is added: by the chain rule of KL the paper's loss sees a head's choice among those only in
  // proportion to the mass they hold.
  double content_weight = 0;
  // A head's divergence is raised to this: above 1 the few heads that look for what a prompt asks
  // for, and are missed by far, weigh more than the many that are nearly right.
  double head_power = 1;
};

// Entries at a prompt's start that take most of the attention in deep layers whatever they say
// (attention sinks, arXiv 2309.17453), so that no method has to be taught to keep them.
constexpr int64_t kSinkEntries = 4;

// A layer's part of the loss: the sum over its heads.
at::Tensor training_divergence(const at::Tensor& target, const at::Tensor& scores,
                               const TrainingLoss& loss);

// Share of the true attention mass that the `budget` best entries by `scores` hold, relative to the
// best possible `budget` entries; both as the mean over the query heads of a KV group. The mean
// over KV heads.
double attention_recall(const at::Tensor& target, const at::Tensor& scores, int64_t num_kv_heads,
                        int64_t budget);

}  // namespace kvlab
