// Causal attention of a chunk of queries over the keys and values so far: the one door to every
// attention routine of prefill and training.
//
//   CPU, inference      harness/kernels/prefill_attention.h
//   CUDA, inference     PyTorch's flash or memory-efficient kernel for the chunk's own keys and for
//                       the cached prefix, merged by their logsumexp; never the math fallback
//   everything else     chunk_attention_reference: softmax in blocks of queries, with gradients
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace kvlab {

struct ChunkAttentionArgs {
  at::Tensor queries;  // [num_heads, q_len, head_dim], any strides with contiguous rows
  at::Tensor keys;     // [num_kv_heads, kv_len, head_dim], kv_len >= q_len; the same
  at::Tensor values;   // [num_kv_heads, kv_len, head_dim]
  double scale = 1;
  int64_t sliding_window = 0;  // keys a query sees, itself included; 0: all before it
  bool want_logsumexp = false;
};

struct ChunkAttention {
  at::Tensor output;     // [q_len, num_heads, head_dim], contiguous, the queries' dtype
  at::Tensor logsumexp;  // [num_heads, q_len] float32; undefined unless wanted
};

// Query i stands at position kv_len - q_len + i and sees the keys up to there.
ChunkAttention chunk_attention(const ChunkAttentionArgs& args);

// Plain ATen operations, float32 inside (double for double); never holds more than
// [num_heads, 128, kv_len] scores.
ChunkAttention chunk_attention_reference(const ChunkAttentionArgs& args);

// The fused PyTorch kernels; no sliding window. On the CPU it exists to test the merging.
ChunkAttention chunk_attention_sdpa(const ChunkAttentionArgs& args);

// Adds to sums [num_heads, >= kv_len] float32 the attention every key received from these queries,
// from `logsumexp` as chunk_attention gave it (H2O's score). Blocks of queries, never q_len x
// kv_len.
void add_chunk_attention_sums(const ChunkAttentionArgs& args, const at::Tensor& logsumexp,
                              const at::Tensor& sums);

// The same in plain ATen operations, for any device.
void add_chunk_attention_sums_reference(const ChunkAttentionArgs& args, const at::Tensor& logsumexp,
                                        const at::Tensor& sums);

}  // namespace kvlab
