// What attention_mass_cuda.cu exports: each queues its kernels and returns a cudaError_t.
#pragma once

#include "methods/attention_mass/cuda/attention_mass_cuda.h"

namespace kvlab {

int launch_attention_mass(const CudaAttentionMassArgs& args, void* stream);
int launch_attention_sums(const AttentionSumsArgs& args, void* stream);
int launch_score_reduction(const float* scores, int64_t num_heads, int64_t num_groups,
                           int64_t num_keys, const ScoreReduction& reduction, float* out,
                           void* stream);

}  // namespace kvlab
