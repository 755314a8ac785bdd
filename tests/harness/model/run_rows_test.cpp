// Rows given as embeddings after a finished prompt (learned lookahead tokens) and their adapter.
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "harness/model/layer_ops.h"
#include "harness/model/threads.h"
#include "harness/model/transformer_lm.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

using Target = RowAdapter::Target;

// Dense deltas [out, in], one for every target of every layer.
class DenseAdapter final : public RowAdapter {
 public:
  explicit DenseAdapter(const ModelWeights& weights) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(2);
    for (const LayerWeights& layer : weights.layers) {
      auto& deltas = deltas_.emplace_back();
      const std::map<Target, at::Tensor> bases = {
          {Target::kQ, layer.q},      {Target::kK, layer.k},       {Target::kV, layer.v},
          {Target::kO, layer.o},      {Target::kGate, layer.gate}, {Target::kUp, layer.up},
          {Target::kDown, layer.down}};
      for (const auto& [target, base] : bases) {
        deltas[target] = at::randn(base.sizes(), generator) * 0.05;
      }
    }
  }

  void add_delta(int64_t layer, Target target, const at::Tensor& rows,
                 at::Tensor& out) const override {
    out.add_(at::linear(rows, deltas_[static_cast<size_t>(layer)].at(target)));
    calls_[{layer, target}]++;
  }

  const at::Tensor& delta(int64_t layer, Target target) const {
    return deltas_[static_cast<size_t>(layer)].at(target);
  }
  const std::map<std::pair<int64_t, Target>, int>& calls() const { return calls_; }

 private:
  std::vector<std::map<Target, at::Tensor>> deltas_;
  mutable std::map<std::pair<int64_t, Target>, int> calls_;
};

class RunRows : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_compute_threads(1);
    auto model = TransformerLm::load(golden_dir() / "models" / GetParam(), {.dtype = at::kFloat});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    for (int32_t i = 0; i < 70; ++i) {
      ids_.push_back((i * 37 + 5) % static_cast<int32_t>(model_->config().vocab_size));
    }
    prompt_ = *model_->prefill(std::span(ids_).first(60), {});
  }

  std::shared_ptr<TransformerLm> model_;
  std::vector<int32_t> ids_;
  std::shared_ptr<PromptState> prompt_;
};

TEST_P(RunRows, RowsOfTokenEmbeddingsAskWhatTheTokensAsk) {
  const std::span<const int32_t> tokens = std::span(ids_).subspan(60);
  KvCache cache = KvCache::full(prompt_, 10);
  CapturedQueries expected;
  ASSERT_TRUE(model_->extend(tokens, cache, &expected).ok());
  const c10::InferenceMode inference;
  std::vector<int64_t> index(tokens.begin(), tokens.end());
  const at::Tensor embeddings =
      at::index_select(model_->weights().embedding, 0, at::tensor(at::IntArrayRef(index)));
  const at::Tensor before = embeddings.clone();
  const at::Tensor keys_before = prompt_->layers[0].keys.clone();
  const auto rows = model_->run_rows(*prompt_, embeddings, nullptr);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->queries.size(), model_->weights().layers.size());
  for (size_t l = 0; l < rows->queries.size(); ++l) {
    EXPECT_LT((rows->queries[l] - expected.queries[l]).abs().max().item<double>(), 1e-4) << l;
    EXPECT_LT((rows->keys[l] - expected.keys[l]).abs().max().item<double>(), 1e-4) << l;
  }
  EXPECT_TRUE(at::equal(embeddings, before));
  EXPECT_TRUE(at::equal(prompt_->layers[0].keys, keys_before));
}

// The adapter against one merged into the weights: with deltas on every row, rows after a prompt
// whose keys and values the base model made.
TEST_P(RunRows, DeltasActLikeChangedWeightsOnTheRowsAlone) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(4);
  const c10::InferenceMode inference;
  const ModelConfig& config = model_->config();
  const at::Tensor embeddings = at::randn({6, config.hidden_size}, generator);
  const DenseAdapter adapter(model_->weights());
  const auto rows = model_->run_rows(*prompt_, embeddings, &adapter);
  ASSERT_TRUE(rows.ok()) << rows.status();

  const auto angles = model_->rotary().tables(60, 6);
  at::Tensor hidden = embeddings.to(at::kDouble);
  for (int64_t l = 0; l < config.num_layers; ++l) {
    const auto index = static_cast<size_t>(l);
    const LayerWeights& w = model_->weights().layers[index];
    const auto wide = [](const at::Tensor& x) {
      return x.defined() ? x.to(at::kDouble) : at::Tensor();
    };
    const auto merged = [&](const at::Tensor& weight, Target target) {
      return wide(weight) + wide(adapter.delta(l, target));
    };
    const at::Tensor normed = rms_norm(hidden, wide(w.attention_norm), config.rms_norm_eps);
    const auto project = [&](const at::Tensor& weight, Target target, const at::Tensor& bias) {
      return apply_linear(normed, merged(weight, target), wide(bias))
          .unflatten(1, {weight.size(0) / config.head_dim, config.head_dim})
          .transpose(0, 1);
    };
    const at::Tensor q = rotate(project(w.q, Target::kQ, w.q_bias), angles.cos, angles.sin,
                                wide(w.q_norm), config.rms_norm_eps);
    const at::Tensor k = rotate(project(w.k, Target::kK, w.k_bias), angles.cos, angles.sin,
                                wide(w.k_norm), config.rms_norm_eps);
    EXPECT_LT((rows->queries[index].to(at::kDouble) - q).abs().max().item<double>(), 1e-4) << l;
    EXPECT_LT((rows->keys[index].to(at::kDouble) - k).abs().max().item<double>(), 1e-4) << l;
    ChunkAttentionArgs args;
    args.queries = q;
    args.keys = at::cat({wide(prompt_->layers[index].keys), k}, 1);
    args.values =
        at::cat({wide(prompt_->layers[index].values), project(w.v, Target::kV, w.v_bias)}, 1);
    args.scale = model_->attention_scale();
    args.sliding_window = config.sliding_window;
    const at::Tensor attended = chunk_attention(args).output.flatten(1);
    hidden = hidden + apply_linear(attended, merged(w.o, Target::kO));
    const at::Tensor inner = rms_norm(hidden, wide(w.mlp_norm), config.rms_norm_eps);
    hidden = hidden + apply_linear(silu_mul(apply_linear(inner, merged(w.gate, Target::kGate)),
                                            apply_linear(inner, merged(w.up, Target::kUp))),
                                   merged(w.down, Target::kDown));
  }
  // In the last layer only queries and keys can change a score.
  const int64_t last = config.num_layers - 1;
  EXPECT_TRUE(adapter.calls().contains({last, Target::kQ}));
  EXPECT_FALSE(adapter.calls().contains({last, Target::kO}));
  EXPECT_FALSE(adapter.calls().contains({last, Target::kDown}));
}

TEST_P(RunRows, WrongShapesAndMissingPositionsAreErrors) {
  const int64_t hidden = model_->config().hidden_size;
  EXPECT_FALSE(model_->run_rows(*prompt_, at::zeros({2, hidden + 1}), nullptr).ok());
  EXPECT_FALSE(model_->run_rows(*prompt_, at::zeros({hidden}), nullptr).ok());
  EXPECT_FALSE(model_->run_rows(*prompt_, at::zeros({0, hidden}), nullptr).ok());
  EXPECT_FALSE(
      model_->run_rows(*prompt_, at::zeros({model_->config().max_positions - 59, hidden}), nullptr)
          .ok());
}

INSTANTIATE_TEST_SUITE_P(Models, RunRows,
                         testing::Values("tiny-llama3", "tiny-qwen2", "tiny-qwen3",
                                         "tiny-mistral-window"));

}  // namespace
}  // namespace kvlab
