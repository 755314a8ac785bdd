// Expected attention: how much queries like the prompt's will look at each entry from the positions
// that follow.
#include <cmath>

#include "harness/base/status.h"
#include "harness/model/rotary.h"
#include "methods/preset_parts.h"
#include "methods/presets.h"
#include "methods/scorers.h"

namespace kvlab {
namespace {

// The mean of the rotations at positions first .. first + count - 1: [head_dim, head_dim] float32,
// for rotary embeddings that pair dimension i with i + head_dim / 2.
at::Tensor mean_rotation(const ModelConfig& config, int64_t first, int64_t count) {
  RotaryEmbedding rotary(config);
  const RotaryEmbedding::Tables tables = rotary.tables(first, count);
  const at::Tensor cos = at::diag(tables.cos.mean(0));
  const at::Tensor sin = at::diag(tables.sin.mean(0));
  return at::cat({at::cat({cos, sin.neg()}, 1), at::cat({sin, cos}, 1)}, 0);
}

class ExpectedAttentionScorer final : public Scorer {
 public:
  explicit ExpectedAttentionScorer(const ExpectedAttentionOptions& options) : options_(options) {}

  PrefillNeeds needs() const override {
    return {.query_moments = true, .moments_from = options_.skipped_tokens};
  }

  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    if (input.config == nullptr) {
      return failed_precondition("expected attention needs the model's rotary embedding");
    }
    const int64_t prompt_len = input.prompt->prompt_len();
    const at::Tensor rotation = mean_rotation(*input.config, prompt_len, options_.future_positions);
    return LayerScores([prompt = input.prompt, rotation, options = options_](int64_t layer) {
      return layer_scores(prompt->layers[layer], rotation, options);
    });
  }

 private:
  static absl::StatusOr<at::Tensor> layer_scores(const LayerState& state,
                                                 const at::Tensor& cpu_rotation,
                                                 const ExpectedAttentionOptions& options) {
    if (!state.query_mean.defined() || !state.query_covariance.defined()) {
      return failed_precondition("the prefill recorded no query moments");
    }
    const int64_t num_heads = state.query_mean.size(0);
    const int64_t num_kv_heads = state.keys.size(0);
    const int64_t prompt_len = state.keys.size(1);
    const int64_t head_dim = state.keys.size(2);
    const int64_t scored = prompt_len - options.skipped_tokens;
    const at::Tensor rotation = cpu_rotation.to(state.keys.device());
    const at::Tensor mean = at::matmul(state.query_mean, rotation.t());  // [num_heads, head_dim]
    const at::Tensor covariance =
        at::matmul(rotation, at::matmul(state.query_covariance, rotation.t()));
    const at::Tensor keys = state.keys.narrow(1, options.skipped_tokens, scored).to(at::kFloat);
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
    at::Tensor scores = at::zeros({num_heads, prompt_len}, keys.options());
    for (int64_t head = 0; head < num_heads; ++head) {
      const at::Tensor head_keys = keys[head / (num_heads / num_kv_heads)];  // [scored, head_dim]
      at::Tensor logits = at::mv(head_keys, mean[head]) * scale;
      if (options.use_covariance) {
        const at::Tensor spread = (at::matmul(head_keys, covariance[head]) * head_keys).sum(-1);
        logits += spread * (0.5 * scale * scale);
      }
      scores[head].narrow(0, options.skipped_tokens, scored).copy_(at::softmax(logits, -1));
    }
    if (options.use_value_norm) {
      const at::Tensor norms = at::linalg_vector_norm(state.values.to(at::kFloat), 2, {-1});
      scores =
          (scores + options.epsilon) * norms.repeat_interleave(num_heads / num_kv_heads, /*dim=*/0);
    }
    return scores;
  }

  ExpectedAttentionOptions options_;
};

}  // namespace

std::unique_ptr<Scorer> make_expected_attention_scorer(const ExpectedAttentionOptions& options) {
  return std::make_unique<ExpectedAttentionScorer>(options);
}

MethodDefinition expected_attention_method() {
  MethodDefinition definition;
  definition.info = {
      .name = "expected_attention",
      .summary = "attention expected of queries like the prompt's from the next 512 positions",
      .source = "arXiv 2510.00636, as NVIDIA/kvpress 0.5.5 has it",
      .cost = "query moments in prefill, one quadratic form per query head and key",
      .parameters = with_selection_parameters(
          {number_parameter("future_positions", "positions after the prompt that count", 512, 1),
           flag_parameter("covariance", "with the spread of the queries, not their mean alone",
                          true),
           flag_parameter("value_norm", "times the length of the value", true),
           number_parameter("epsilon", "added before the value norm", 0.0, 0)},
          {.sinks = 4}),
      .variants = {},
  };
  definition.make = [](const Json& params) {
    const ExpectedAttentionOptions options{
        .future_positions = params.at("future_positions").get<int64_t>(),
        .skipped_tokens = params.at("sinks").get<int64_t>(),
        .use_covariance = params.at("covariance").get<bool>(),
        .use_value_norm = params.at("value_norm").get<bool>(),
        .epsilon = params.at("epsilon").get<double>(),
    };
    return scored_policy("expected_attention", params, make_expected_attention_scorer(options));
  };
  return definition;
}

}  // namespace kvlab
