// The lookahead rows with gradients. Prompt rows do not depend on what is trained, so their keys
// and values are constants here, and only num_tokens rows of every layer are differentiated: exact,
// not an approximation.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>

#include "harness/model/model_config.h"
#include "harness/model/rotary.h"
#include "harness/model/weights.h"
#include "methods/lookahead_kv/adapter.h"

namespace kvlab {

// The base model's weights in the precision of training (float32; double in tests).
struct FrozenModel {
  ModelConfig config;
  ModelWeights weights;
  RotaryEmbedding rotary;

  static absl::StatusOr<std::shared_ptr<FrozenModel>> load(const std::filesystem::path& model_dir,
                                                           at::ScalarType dtype);
};

// Keys and values of a layer's prompt, [num_kv_heads, prompt_len, head_dim], any float type.
struct PromptLayer {
  at::Tensor keys;
  at::Tensor values;
};
using PromptLayers = std::function<PromptLayer(int64_t layer)>;

// What a layer's rows are and do, after rotary embedding.
struct RowLayer {
  at::Tensor queries;  // [num_heads, num_rows, head_dim]
  at::Tensor keys;     // [num_kv_heads, num_rows, head_dim]
  at::Tensor values;   // the same; the last layer's are the keys, nothing depends on them
  at::Tensor scores;   // [num_heads, prompt_len]: mean over the rows of their softmax weights on
                       // prompt keys; rows also see themselves and earlier rows
};
using RowLayerVisitor = std::function<void(int64_t layer, const RowLayer& rows)>;

// Runs `rows` [num_rows, hidden_size], input embeddings at positions prompt_len and after, through
// the model with the adapter's updates (null: none) and hands each layer over as soon as it is
// there. LookaheadKV's rows are adapter.tokens(). With prompt_len 0 the rows are a prompt of their
// own.
void run_rows_with_gradient(FrozenModel& model, const LookaheadAdapter* adapter,
                            const at::Tensor& rows, int64_t prompt_len, const PromptLayers& prompt,
                            const RowLayerVisitor& visit);

}  // namespace kvlab
