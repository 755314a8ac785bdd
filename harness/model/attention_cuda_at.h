// The model's attention on the GPU beyond PyTorch's own kernels, and what keeps PyTorch's from a
// slow way that nobody asked for.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/status.h>

#include <span>

#include "harness/kernels/decode_attention.h"
#include "harness/model/attention.h"

namespace kvlab {

// What a model on a GPU needs, refused with a reason otherwise: a GPU of sm_80 or newer, and heads
// that PyTorch's fused kernels and ours take (head_dim a multiple of 8 up to 256, at most 16 query
// heads a KV head). Also turns SDPA's math kernel off for the process: a call that no fused kernel
// takes then fails instead of building every score in memory.
absl::Status prepare_cuda_attention(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim);

// decode_attention on the device of `queries`, to which all pointers of the heads belong.
// use_cuda_kernels(queries) must hold.
void decode_attention_cuda_at(const DecodeAttentionArgs& args, const at::Tensor& queries);

// add_chunk_attention_sums where use_cuda_kernels(args.queries) holds.
void add_chunk_attention_sums_cuda(const ChunkAttentionArgs& args, const at::Tensor& logsumexp,
                                   const at::Tensor& sums);

}  // namespace kvlab
