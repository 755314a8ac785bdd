#include "harness/model/random_weights.h"

#include <ATen/CPUGeneratorImpl.h>

namespace kvlab {
namespace {

constexpr double kDeviation = 0.02;

class Maker final {
 public:
  Maker(at::ScalarType dtype, at::Device device, uint64_t seed)
      : options_(at::TensorOptions().dtype(dtype).device(device)) {
    if (device.is_cpu()) {
      generator_ = at::make_generator<at::CPUGeneratorImpl>(seed);
    } else {
      generator_ = at::globalContext().defaultGenerator(device).clone();
      generator_->set_current_seed(seed);
    }
  }

  at::Tensor matrix(int64_t rows, int64_t columns) const {
    return at::empty({rows, columns}, options_).normal_(0, kDeviation, generator_);
  }
  at::Tensor ones(int64_t size) const { return at::ones({size}, options_); }
  at::Tensor zeros(int64_t size) const { return at::zeros({size}, options_); }

 private:
  at::TensorOptions options_;
  std::optional<at::Generator> generator_;
};

}  // namespace

ModelWeights random_weights(const ModelConfig& config, at::ScalarType dtype, at::Device device,
                            uint64_t seed) {
  const Maker make(dtype, device, seed);
  const int64_t hidden = config.hidden_size;
  const int64_t q_size = config.num_heads * config.head_dim;
  const int64_t kv_size = config.num_kv_heads * config.head_dim;
  const int64_t inner = config.intermediate_size;
  ModelWeights weights;
  weights.embedding = make.matrix(config.vocab_size, hidden);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = make.ones(hidden);
    layer.q = make.matrix(q_size, hidden);
    layer.k = make.matrix(kv_size, hidden);
    layer.v = make.matrix(kv_size, hidden);
    if (config.attention_bias) {
      layer.q_bias = make.zeros(q_size);
      layer.k_bias = make.zeros(kv_size);
      layer.v_bias = make.zeros(kv_size);
    }
    if (config.query_key_norm) {
      layer.q_norm = make.ones(config.head_dim);
      layer.k_norm = make.ones(config.head_dim);
    }
    layer.o = make.matrix(hidden, q_size);
    layer.mlp_norm = make.ones(hidden);
    layer.gate = make.matrix(inner, hidden);
    layer.up = make.matrix(inner, hidden);
    layer.down = make.matrix(hidden, inner);
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = make.ones(hidden);
  weights.lm_head =
      config.tie_word_embeddings ? weights.embedding : make.matrix(config.vocab_size, hidden);
  return weights;
}

}  // namespace kvlab
