// The attention-mass routine and the score reductions on the GPU.
#pragma once

#include <ATen/ATen.h>

#include "methods/attention_mass/attention_mass.h"
#include "methods/attention_mass/cuda/attention_mass_cuda.h"
#include "methods/query_source.h"

namespace kvlab {

// attention_mass of attention_mass_at.h where use_cuda_kernels(keys) holds and all tensors have one
// type.
at::Tensor attention_mass_cuda_at(const QueryRows& rows, const at::Tensor& keys,
                                  RowReduction reduction);

// Group reduction and pooling: scores [heads, n] float32 on a GPU -> [num_groups, num_scored]
// there.
at::Tensor reduce_scores_cuda_at(const at::Tensor& scores, int64_t num_groups,
                                 const ScoreReduction& reduction);

}  // namespace kvlab
