// Attention mass, attention sums and score reductions on the GPU: attention_mass.h,
// attention_sums.h and score_reduction.h for device memory.
//
// Of all arguments: pointers are to device memory, rows of queries and keys start on 16 bytes,
// head_dim is a multiple of 8 up to 256. Work is queued on `stream` (a cudaStream_t; null: the
// default stream). Invalid argument for shapes not taken, internal where a launch fails.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "methods/attention_mass/attention_mass.h"
#include "methods/attention_mass/attention_sums.h"
#include "methods/attention_mass/score_reduction.h"

namespace kvlab {

// From scores per query head to scores per group of query heads, in either order.
struct ScoreReduction {
  GroupReduction group = GroupReduction::kMean;
  PoolKind pooling = PoolKind::kNone;
  int64_t kernel = 1;              // odd
  bool pool_before_group = false;  // else the group is reduced first
  int64_t num_scored = 0;  // the first so many keys; those after do not take part in pooling
};

struct CudaAttentionMassArgs {
  // At most 16 query heads a KV head. `mass.mass` is written, unless `reduced` is given.
  AttentionMassArgs mass;
  // With `reduced`, reduction over the group and pooling follow in the same kernel; kernel <= 49.
  ScoreReduction reduction;
  float* reduced = nullptr;  // [num_kv_heads, reduction.num_scored], written
  void* scratch = nullptr;   // cuda_attention_mass_scratch_bytes()
};

int64_t cuda_attention_mass_scratch_bytes(const AttentionMassArgs& args);

absl::Status attention_mass_cuda(const CudaAttentionMassArgs& args, void* stream);

// At most 16 query heads a KV head.
absl::Status add_attention_sums_cuda(const AttentionSumsArgs& args, void* stream);

// scores [num_heads, num_keys], the query heads of a group side by side
// -> out [num_groups, reduction.num_scored].
absl::Status reduce_scores_cuda(const float* scores, int64_t num_heads, int64_t num_groups,
                                int64_t num_keys, const ScoreReduction& reduction, float* out,
                                void* stream);

}  // namespace kvlab
