// The gather that compacts caches on the GPU: the kept entries of many heads in one launch.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

namespace kvlab {

// One layer's KV head. All pointers to device memory; rows of `row_bytes`, aligned to 16 bytes.
struct GatherHead {
  const void* keys = nullptr;  // [prompt_len, head_dim], rows key_stride_bytes apart
  const void* values = nullptr;
  int64_t key_stride_bytes = 0;
  int64_t value_stride_bytes = 0;
  const int32_t* positions = nullptr;  // [count], each below prompt_len
  int64_t count = 0;
  void* out_keys = nullptr;  // [count, head_dim] contiguous
  void* out_values = nullptr;
};

struct CudaGatherArgs {
  const GatherHead* heads = nullptr;  // device array
  int64_t num_heads = 0;              // of any number of layers
  int64_t largest_count = 0;          // the most entries a head keeps
  int64_t row_bytes = 0;              // head_dim * element size, a multiple of 16
};

// out_keys[i] = keys[positions[i]] and the same for values, for every head. Queued on `stream` (a
// cudaStream_t; null: the default stream). Invalid argument for rows that are no multiple of 16
// bytes, internal where the launch fails.
absl::Status gather_cuda(const CudaGatherArgs& args, void* stream);

}  // namespace kvlab
