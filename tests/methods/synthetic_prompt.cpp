#include "tests/methods/synthetic_prompt.h"

#include <ATen/CPUGeneratorImpl.h>

namespace kvlab {

ModelConfig synthetic_config(const SyntheticShape& shape) {
  ModelConfig config;
  config.model_type = "llama";
  config.num_layers = shape.num_layers;
  config.num_heads = shape.num_heads;
  config.num_kv_heads = shape.num_kv_heads;
  config.head_dim = shape.head_dim;
  config.hidden_size = shape.num_heads * shape.head_dim;
  config.intermediate_size = 2 * config.hidden_size;
  config.vocab_size = 1000;
  config.max_positions = 4096;
  config.rope_theta = 10000;
  config.rope_scaling.type = "default";
  config.stop_ids = {2};
  return config;
}

std::shared_ptr<PromptState> synthetic_prompt(const SyntheticShape& shape) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(shape.seed);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes, generator, options); };
  const int64_t tail = std::min(shape.tail_queries, shape.prompt_len);
  auto prompt = std::make_shared<PromptState>();
  for (int64_t i = 0; i < shape.prompt_len; ++i) {
    prompt->token_ids.push_back(
        static_cast<int32_t>((i * 7919 + static_cast<int64_t>(shape.seed) * 31) % 1000));
  }
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    LayerState state;
    state.keys =
        random({shape.num_kv_heads, shape.prompt_len, shape.head_dim}).to(shape.dtype) * 1.5;
    state.values = random({shape.num_kv_heads, shape.prompt_len, shape.head_dim}).to(shape.dtype);
    state.tail_queries = random({shape.num_heads, tail, shape.head_dim}).to(shape.dtype) * 1.5;
    state.attention_sums = random({shape.num_heads, shape.prompt_len}).abs();
    state.query_mean = random({shape.num_heads, shape.head_dim});
    const at::Tensor root = random({shape.num_heads, shape.head_dim, shape.head_dim}) * 0.3;
    state.query_covariance = at::matmul(root, root.transpose(1, 2));
    prompt->layers.push_back(std::move(state));
  }
  prompt->last_logits = random({1000});
  return prompt;
}

Draft synthetic_draft(const SyntheticShape& shape, int64_t num_tokens) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(shape.seed + 1000);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  Draft draft;
  for (int64_t i = 0; i < num_tokens; ++i) {
    draft.token_ids.push_back(static_cast<int32_t>(i + 10));
  }
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    draft.queries.queries.push_back(
        at::randn({shape.num_heads, num_tokens, shape.head_dim}, generator, options)
            .to(shape.dtype));
    draft.queries.keys.push_back(
        at::randn({shape.num_kv_heads, num_tokens, shape.head_dim}, generator, options)
            .to(shape.dtype));
  }
  return draft;
}

}  // namespace kvlab
