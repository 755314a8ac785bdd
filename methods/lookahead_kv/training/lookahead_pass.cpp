#include "methods/lookahead_kv/training/lookahead_pass.h"

#include <cmath>
#include <limits>

#include "harness/base/status.h"
#include "harness/model/layer_ops.h"

namespace kvlab {
namespace {

using Target = RowAdapter::Target;

// base linear + adapter's delta for rows [num_rows, in_features].
at::Tensor adapted_linear(const LookaheadAdapter* adapter, int64_t layer, Target target,
                          const at::Tensor& rows, const at::Tensor& weight,
                          const at::Tensor& bias = {}) {
  const at::Tensor out = linear(rows, weight, bias);
  const at::Tensor delta = adapter != nullptr ? adapter->delta(layer, target, rows) : at::Tensor();
  return delta.defined() ? out + delta : out;
}

// [rows, heads * head_dim] -> [heads, rows, head_dim].
at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), heads, -1}).transpose(0, 1);
}

struct RowAttention {
  at::Tensor scores;  // [num_heads, prompt_len], mean over rows
  at::Tensor output;  // [rows, num_heads * head_dim]
};

// queries [num_heads, n, d]; own keys and values [num_kv_heads, n, d].
RowAttention attend(const at::Tensor& queries, const at::Tensor& own_keys,
                    const at::Tensor& own_values, const at::Tensor& prompt_keys,
                    const at::Tensor& prompt_values) {
  const int64_t num_heads = queries.size(0);
  const int64_t n = queries.size(1);
  const int64_t d = queries.size(2);
  const int64_t kv_heads = own_keys.size(0);
  const int64_t group = num_heads / kv_heads;
  const int64_t prompt_len = prompt_keys.size(1);
  const at::Tensor scaled =
      (queries / std::sqrt(static_cast<double>(d))).reshape({kv_heads, group * n, d});
  const at::Tensor on_prompt = at::matmul(scaled, prompt_keys.transpose(1, 2));
  const at::Tensor later = at::ones({n, n}, queries.options().dtype(at::kBool)).triu(1);
  const at::Tensor on_own = at::matmul(scaled, own_keys.transpose(1, 2))
                                .view({kv_heads, group, n, n})
                                .masked_fill(later, -std::numeric_limits<double>::infinity())
                                .view({kv_heads, group * n, n});
  const at::Tensor weights = at::softmax(at::cat({on_prompt, on_own}, -1), -1);
  const at::Tensor prompt_weights = weights.narrow(-1, 0, prompt_len);
  const at::Tensor own_weights = weights.narrow(-1, prompt_len, n);
  RowAttention result;
  result.scores = prompt_weights.reshape({num_heads, n, prompt_len}).mean(1);
  result.output = (at::matmul(prompt_weights, prompt_values) + at::matmul(own_weights, own_values))
                      .view({num_heads, n, d})
                      .transpose(0, 1)
                      .reshape({n, num_heads * d});
  return result;
}

}  // namespace

absl::StatusOr<std::shared_ptr<FrozenModel>> FrozenModel::load(
    const std::filesystem::path& model_dir, at::ScalarType dtype) {
  KVLAB_ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::load(model_dir));
  if (config.sliding_window > 0) {
    return unimplemented("{}: training with a sliding window is not supported", model_dir.string());
  }
  KVLAB_ASSIGN_OR_RETURN(ModelWeights weights, load_weights(model_dir, config, dtype, at::kCPU));
  const RotaryEmbedding rotary(config);
  return std::make_shared<FrozenModel>(FrozenModel{config, std::move(weights), rotary});
}

void run_rows_with_gradient(FrozenModel& model, const LookaheadAdapter* adapter,
                            const at::Tensor& rows, int64_t prompt_len, const PromptLayers& prompt,
                            const RowLayerVisitor& visit) {
  const ModelConfig& config = model.config;
  const double eps = config.rms_norm_eps;
  at::Tensor hidden = rows;
  const int64_t n = hidden.size(0);
  const auto [cos, sin] = model.rotary.tables(prompt_len, n);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const LayerWeights& w = model.weights.layers[static_cast<size_t>(layer)];
    const bool last = layer + 1 == config.num_layers;
    const at::Tensor normed = rms_norm(hidden, w.attention_norm, eps);
    const at::Tensor queries =
        rotate(split_heads(adapted_linear(adapter, layer, Target::kQ, normed, w.q, w.q_bias),
                           config.num_heads),
               cos, sin, w.q_norm, eps);
    const at::Tensor keys =
        rotate(split_heads(adapted_linear(adapter, layer, Target::kK, normed, w.k, w.k_bias),
                           config.num_kv_heads),
               cos, sin, w.k_norm, eps);
    const at::Tensor values =
        last ? keys  // nothing after the last layer's scores depends on its values
             : split_heads(adapted_linear(adapter, layer, Target::kV, normed, w.v, w.v_bias),
                           config.num_kv_heads);
    const PromptLayer layer_prompt = prompt(layer);
    const at::ScalarType dtype = hidden.scalar_type();
    const RowAttention attention =
        attend(queries, keys, values, layer_prompt.keys.to(dtype), layer_prompt.values.to(dtype));
    visit(layer, {.queries = queries, .keys = keys, .values = values, .scores = attention.scores});
    if (last) {
      return;
    }
    hidden = hidden + adapted_linear(adapter, layer, Target::kO, attention.output, w.o);
    const at::Tensor mlp_in = rms_norm(hidden, w.mlp_norm, eps);
    const at::Tensor inner = silu_mul(adapted_linear(adapter, layer, Target::kGate, mlp_in, w.gate),
                                      adapted_linear(adapter, layer, Target::kUp, mlp_in, w.up));
    hidden = hidden + adapted_linear(adapter, layer, Target::kDown, inner, w.down);
  }
}

}  // namespace kvlab
