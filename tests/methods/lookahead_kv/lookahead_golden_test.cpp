// Inference and training against a naive implementation in transformers, float64 for gradients
// (tests/golden/lookahead_kv.py).
#include <gmock/gmock.h>

#include "harness/base/status.h"
#include "methods/lookahead_kv/adapter.h"
#include "methods/lookahead_kv/lookahead_source.h"
#include "methods/lookahead_kv/training/attention_target.h"
#include "methods/lookahead_kv/training/lookahead_pass.h"
#include "methods/scorers.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

class LookaheadGolden : public ::testing::TestWithParam<std::string> {
 protected:
  LookaheadGolden()
      : model_dir_(golden_dir() / "models" / GetParam()),
        adapter_(golden_dir() / "models" / (GetParam() + ".adapter.safetensors")),
        golden_(golden_dir() / "lookahead_kv" / (GetParam() + ".safetensors")),
        prompt_ids_(golden_.get<int32_t>("prompt_ids")),
        reply_ids_(golden_.get<int32_t>("reply_ids")) {}

  std::filesystem::path model_dir_;
  std::filesystem::path adapter_;
  GoldenFile golden_;
  std::vector<int32_t> prompt_ids_;
  std::vector<int32_t> reply_ids_;
};

TEST_P(LookaheadGolden, ScoresOfRowsOverAFinishedPromptEqualTheAppendedForm) {
  const auto model = CausalLm::load(model_dir_, {.dtype = at::kFloat}).value();
  const auto prompt = model->prefill(prompt_ids_, {}).value();
  const auto scorer = make_attention_scorer(
      make_lookahead_source({.adapter = adapter_, .accept_unknown_base = true}),
      RowReduction::kMean);
  const SelectionInput input{
      .prompt = prompt.get(), .config = &model->config(), .budget = {32}, .model = model.get()};
  const LayerScores scores = scorer->prepare(input).value();
  const std::vector<float> expected = golden_.get<float>("scores");
  const int64_t layers = model->config().num_layers;
  const auto per_layer = static_cast<int64_t>(expected.size()) / layers;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const at::Tensor got = scores(layer).value().contiguous();
    ASSERT_EQ(got.numel(), per_layer);
    for (int64_t i = 0; i < per_layer; ++i) {
      ASSERT_NEAR(got.const_data_ptr<float>()[i], expected[layer * per_layer + i], 1e-6)
          << "layer " << layer << " at " << i;
    }
  }
}

TEST_P(LookaheadGolden, LossAndGradientsEqualTheNaiveOnes) {
  const auto frozen = FrozenModel::load(model_dir_, at::kDouble).value();
  const auto adapter = LookaheadAdapter::load(adapter_, frozen->config,
                                              {.dtype = at::kDouble, .accept_unknown_base = true})
                           .value();
  adapter->require_gradients();
  const auto prompt_len = static_cast<int64_t>(prompt_ids_.size());
  const auto reply_len = static_cast<int64_t>(reply_ids_.size());
  std::vector<int64_t> ids(prompt_ids_.begin(), prompt_ids_.end());
  ids.insert(ids.end(), reply_ids_.begin(), reply_ids_.end());

  // Prompt and reply once, without gradient.
  std::vector<RowLayer> base;
  run_rows_with_gradient(
      *frozen, nullptr, frozen->weights.embedding.index_select(0, at::tensor(ids)), 0,
      [&](int64_t) {
        const at::Tensor none = at::zeros({frozen->config.num_kv_heads, 0, frozen->config.head_dim},
                                          at::TensorOptions().dtype(at::kDouble));
        return PromptLayer{none, none};
      },
      [&](int64_t, const RowLayer& rows) { base.push_back(rows); });
  at::Tensor total;
  std::vector<double> divergence;
  run_rows_with_gradient(
      *frozen, adapter.get(), adapter->tokens(), prompt_len,
      [&](int64_t layer) {
        return PromptLayer{base[layer].keys.narrow(1, 0, prompt_len),
                           base[layer].values.narrow(1, 0, prompt_len)};
      },
      [&](int64_t layer, const RowLayer& rows) {
        const at::Tensor target = attention_target(
            base[layer].queries.narrow(1, prompt_len, reply_len),
            base[layer].keys.narrow(1, 0, prompt_len),
            base[layer].keys.narrow(1, prompt_len, reply_len), at::kDouble, /*block_rows=*/7);
        const at::Tensor part = attention_divergence(target, rows.scores);
        divergence.push_back(part.item<double>());
        total = total.defined() ? total + part : part;
      });
  total = total / static_cast<double>(frozen->config.num_layers * frozen->config.num_heads);
  total.backward();
  EXPECT_NEAR(total.item<double>(), golden_.get<double>("loss")[0], 1e-6);
  for (const auto& [name, tensor] : adapter->named_tensors()) {
    const std::vector<double> expected = golden_.get<double>("grad." + name);
    const at::Tensor gradient = tensor.grad().contiguous();
    ASSERT_EQ(gradient.numel(), static_cast<int64_t>(expected.size()));
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(gradient.const_data_ptr<double>()[i], expected[i], 1e-6) << name << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, LookaheadGolden, ::testing::Values("tiny-gqa", "tiny-qwen3"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kvlab
