// The gather that compacts a cache, on the GPU.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "harness/cache/prompt_state.h"

namespace kvlab {

// [kv_head]: [entries kept, head_dim], the heads one after the other in one allocation.
struct GatheredLayer {
  std::vector<at::Tensor> keys;
  std::vector<at::Tensor> values;
};

// The positions `kept` of each KV head of one layer, by one launch. use_cuda_kernels(layer.keys)
// must hold.
GatheredLayer gather_layer_cuda(const LayerState& layer,
                                const std::vector<std::vector<int32_t>>& kept);

}  // namespace kvlab
