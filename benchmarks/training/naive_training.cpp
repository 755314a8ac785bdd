#include "benchmarks/training/naive_training.h"

#include <c10/core/GradMode.h>

#include <cmath>
#include <functional>
#include <limits>

#include "harness/model/layer_ops.h"
#include "methods/lookahead_kv/training/attention_target.h"

namespace kvlab {
namespace {

using Target = RowAdapter::Target;

// Every layer's attention weights, [num_heads, rows, rows].
using WeightsVisitor = std::function<void(int64_t layer, const at::Tensor& weights)>;

// hidden [rows, hidden_size] through all layers; the adapter acts on the rows from `adapted_from`.
void forward(FrozenModel& model, at::Tensor hidden, const LookaheadAdapter* adapter,
             int64_t adapted_from, const WeightsVisitor& visit) {
  const ModelConfig& config = model.config;
  const double eps = config.rms_norm_eps;
  const int64_t n = hidden.size(0);
  const auto [cos, sin] = model.rotary.tables(0, n);
  const at::Tensor later = at::ones({n, n}, hidden.options().dtype(at::kBool)).triu(1);
  const auto adapted = [&](int64_t layer, Target target, const at::Tensor& rows,
                           const at::Tensor& weight, const at::Tensor& bias = {}) {
    const at::Tensor out = at::linear(rows, weight, bias);
    if (adapter == nullptr) {
      return out;
    }
    const at::Tensor delta =
        adapter->delta(layer, target, rows.narrow(0, adapted_from, n - adapted_from));
    return delta.defined()
               ? out + at::cat({at::zeros({adapted_from, out.size(1)}, out.options()), delta})
               : out;
  };
  const auto heads = [](const at::Tensor& x, int64_t count) {
    return x.view({x.size(0), count, -1}).transpose(0, 1);
  };
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const LayerWeights& w = model.weights.layers[static_cast<size_t>(layer)];
    const at::Tensor normed = rms_norm(hidden, w.attention_norm, eps);
    const at::Tensor queries =
        rotate(heads(adapted(layer, Target::kQ, normed, w.q, w.q_bias), config.num_heads), cos, sin,
               w.q_norm, eps);
    const at::Tensor keys =
        rotate(heads(adapted(layer, Target::kK, normed, w.k, w.k_bias), config.num_kv_heads), cos,
               sin, w.k_norm, eps)
            .repeat_interleave(config.group_size(), 0);
    const at::Tensor values =
        heads(adapted(layer, Target::kV, normed, w.v, w.v_bias), config.num_kv_heads)
            .repeat_interleave(config.group_size(), 0);
    const at::Tensor scores =
        at::matmul(queries, keys.transpose(1, 2)) / std::sqrt(static_cast<double>(config.head_dim));
    const at::Tensor weights =
        at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
    visit(layer, weights);
    const at::Tensor attended = at::matmul(weights, values).transpose(0, 1).reshape({n, -1});
    hidden = hidden + adapted(layer, Target::kO, attended, w.o);
    const at::Tensor inner_in = rms_norm(hidden, w.mlp_norm, eps);
    const at::Tensor inner = silu_mul(adapted(layer, Target::kGate, inner_in, w.gate),
                                      adapted(layer, Target::kUp, inner_in, w.up));
    hidden = hidden + adapted(layer, Target::kDown, inner, w.down);
  }
}

at::Tensor embed(const FrozenModel& model, const std::vector<int32_t>& ids) {
  const std::vector<int64_t> wide(ids.begin(), ids.end());
  return model.weights.embedding.index_select(0, at::tensor(wide));
}

}  // namespace

double naive_sample_loss(FrozenModel& model, const LookaheadAdapter& adapter,
                         const TrainingSample& sample, bool backward) {
  const auto prompt_len = static_cast<int64_t>(sample.prompt_ids.size());
  const auto reply_len = static_cast<int64_t>(sample.reply_ids.size());
  std::vector<at::Tensor> targets;
  {
    const c10::NoGradGuard no_grad;
    std::vector<int32_t> ids = sample.prompt_ids;
    ids.insert(ids.end(), sample.reply_ids.begin(), sample.reply_ids.end());
    forward(model, embed(model, ids), nullptr, 0, [&](int64_t, const at::Tensor& weights) {
      const at::Tensor sums =
          weights.narrow(1, prompt_len, reply_len).narrow(2, 0, prompt_len).sum(1);
      targets.push_back(sums / sums.sum(-1, /*keepdim=*/true));
    });
  }
  at::AutoGradMode gradients(backward);
  const at::Tensor rows = at::cat({embed(model, sample.prompt_ids), adapter.tokens()});
  at::Tensor total;
  forward(model, rows, &adapter, prompt_len, [&](int64_t layer, const at::Tensor& weights) {
    const at::Tensor scores =
        weights.narrow(1, prompt_len, rows.size(0) - prompt_len).narrow(2, 0, prompt_len).mean(1);
    const at::Tensor part = attention_divergence(targets[static_cast<size_t>(layer)], scores);
    total = total.defined() ? total + part : part;
  });
  total = total / static_cast<double>(model.config.num_layers * model.config.num_heads);
  if (backward) {
    total.backward();
  }
  return total.item<double>();
}

}  // namespace kvlab
