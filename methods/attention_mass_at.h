// The attention-mass routine on tensors: raw-pointer kernels for CPU tensors, ATen for others.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "methods/attention_mass/attention_mass.h"
#include "methods/attention_mass/score_reduction.h"
#include "methods/query_source.h"

namespace kvlab {

// What `rows` pay to each of `keys` [num_kv_heads, prompt_len, head_dim], softmax in float32 with
// scale head_dim^-0.5, reduced over the rows -> [num_heads, prompt_len] float32, on the device of
// `keys`. float32 or bfloat16; where rows and keys differ, both are taken as float32.
at::Tensor attention_mass(const QueryRows& rows, const at::Tensor& keys, RowReduction reduction);

// The same by ATen operators, on any device, one KV head at a time.
at::Tensor attention_mass_by_operators(const QueryRows& rows, const at::Tensor& keys,
                                       RowReduction reduction);

// False where NaN or infinity stood in queries or keys: a row's weights add up to more than 0
// otherwise. The queries are looked at too, since a maximum over rows hides a NaN.
bool attention_mass_is_sound(const QueryRows& rows, const at::Tensor& mass);

// [num_heads, n] float32 on the CPU -> [num_kv_heads, n].
at::Tensor reduce_group_at(const at::Tensor& scores, int64_t num_kv_heads,
                           GroupReduction reduction);

// [rows, n] float32 on the CPU, pooled with stride 1.
at::Tensor pool_scores_at(const at::Tensor& scores, PoolKind kind, int64_t kernel);

}  // namespace kvlab
