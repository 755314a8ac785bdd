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

// Called with each layer's scores as soon as they are there: [num_heads, prompt_len], the mean over
// the lookahead rows of their softmax weights on prompt keys (rows also see earlier rows).
using LayerScoreVisitor = std::function<void(int64_t layer, const at::Tensor& scores)>;

void lookahead_pass(FrozenModel& model, const LookaheadAdapter& adapter, int64_t prompt_len,
                    const PromptLayers& prompt, const LayerScoreVisitor& visit);

}  // namespace kvlab
