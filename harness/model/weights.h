// The weights of a decoder, as tensors over the mapped files where dtype and device allow.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <vector>

#include "harness/model/model_config.h"

namespace kvlab {

// Linear weights are [out_features, in_features]; undefined where the family has none.
struct LayerWeights {
  at::Tensor attention_norm;          // [hidden_size]
  at::Tensor q, k, v;                 // [num_heads or num_kv_heads * head_dim, hidden_size]
  at::Tensor q_bias, k_bias, v_bias;  // qwen2
  at::Tensor q_norm, k_norm;          // [head_dim], qwen3
  at::Tensor o;                       // [hidden_size, num_heads * head_dim]
  at::Tensor mlp_norm;                // [hidden_size]
  at::Tensor gate, up;                // [intermediate_size, hidden_size]
  at::Tensor down;                    // [hidden_size, intermediate_size]
};

struct ModelWeights {
  at::Tensor embedding;  // [vocab_size, hidden_size]
  std::vector<LayerWeights> layers;
  at::Tensor final_norm;  // [hidden_size]
  at::Tensor lm_head;     // [vocab_size, hidden_size]; the embedding where tied
};

// Weights that already have `dtype` are not copied on the CPU: writing to them faults. Errors: a
// tensor missing, of another shape, not floating point, or one that the model has no place for.
// Only the first config.num_layers layers are read; further ones may be there.
absl::StatusOr<ModelWeights> load_weights(const std::filesystem::path& model_dir,
                                          const ModelConfig& config, at::ScalarType dtype,
                                          at::Device device);

}  // namespace kvlab
