// Decoding over caches whose heads differ in length gives what a dense run gives whose attention is
// masked to the same entries, token for token. The dense run is written out here, in double
// precision, over the full cache.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "harness/generation/greedy.h"
#include "harness/generation/policy_runner.h"
#include "harness/model/rotary.h"
#include "harness/model/transformer_lm.h"
#include "methods/registry.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

// A Llama without biases and query norms (tiny-gqa).
class DenseRun {
 public:
  DenseRun(const TransformerLm& model, const PromptState& prompt, const Selection& selection)
      : config_(model.config()), weights_(model.weights()), rotary_(config_) {
    for (size_t layer = 0; layer < prompt.layers.size(); ++layer) {
      keys_.push_back(prompt.layers[layer].keys.to(at::kDouble));
      values_.push_back(prompt.layers[layer].values.to(at::kDouble));
      at::Tensor mask = at::full({config_.num_kv_heads, prompt.prompt_len()},
                                 -std::numeric_limits<double>::infinity(), at::kDouble);
      for (int64_t head = 0; head < config_.num_kv_heads; ++head) {
        for (const int32_t position : selection.kept[layer][head]) {
          mask[head][position] = 0.0;
        }
      }
      masks_.push_back(mask);
    }
    position_ = prompt.prompt_len();
  }

  // Logits after `token`.
  at::Tensor step(int32_t token) {
    at::Tensor x = weights_.embedding[token].to(at::kDouble);
    const auto tables = rotary_.tables(position_, 1);
    const at::Tensor cos = at::cat({tables.cos[0], tables.cos[0]}).to(at::kDouble);
    const at::Tensor sin = at::cat({tables.sin[0], tables.sin[0]}).to(at::kDouble);
    for (size_t i = 0; i < weights_.layers.size(); ++i) {
      const LayerWeights& layer = weights_.layers[i];
      const at::Tensor normed = norm(x, layer.attention_norm);
      const at::Tensor q = rotated(project(layer.q, normed, config_.num_heads), cos, sin);
      const at::Tensor k = rotated(project(layer.k, normed, config_.num_kv_heads), cos, sin);
      const at::Tensor v = project(layer.v, normed, config_.num_kv_heads);
      keys_[i] = at::cat({keys_[i], k.unsqueeze(1)}, 1);
      values_[i] = at::cat({values_[i], v.unsqueeze(1)}, 1);
      masks_[i] = at::cat({masks_[i], at::zeros({config_.num_kv_heads, 1}, at::kDouble)}, 1);
      std::vector<at::Tensor> heads;
      for (int64_t head = 0; head < config_.num_heads; ++head) {
        const int64_t kv_head = head / config_.group_size();
        const at::Tensor logits =
            at::mv(keys_[i][kv_head], q[head]) / std::sqrt(static_cast<double>(config_.head_dim)) +
            masks_[i][kv_head];
        heads.push_back(at::mv(values_[i][kv_head].t(), at::softmax(logits, -1)));
      }
      x = x + at::mv(layer.o.to(at::kDouble), at::cat(heads));
      const at::Tensor inner = norm(x, layer.mlp_norm);
      const at::Tensor gate = at::mv(layer.gate.to(at::kDouble), inner);
      const at::Tensor up = at::mv(layer.up.to(at::kDouble), inner);
      x = x + at::mv(layer.down.to(at::kDouble), gate * at::sigmoid(gate) * up);
    }
    ++position_;
    return at::mv(weights_.lm_head.to(at::kDouble), norm(x, weights_.final_norm));
  }

 private:
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    return x / at::sqrt(x.square().mean() + config_.rms_norm_eps) * weight.to(at::kDouble);
  }
  at::Tensor project(const at::Tensor& weight, const at::Tensor& x, int64_t heads) const {
    return at::mv(weight.to(at::kDouble), x).view({heads, config_.head_dim});
  }
  at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) const {
    const int64_t half = config_.head_dim / 2;
    const at::Tensor turned = at::cat({x.narrow(1, half, half).neg(), x.narrow(1, 0, half)}, 1);
    return x * cos + turned * sin;
  }

  ModelConfig config_;
  const ModelWeights& weights_;
  RotaryEmbedding rotary_;
  std::vector<at::Tensor> keys_;
  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> masks_;
  int64_t position_ = 0;
};

class RaggedDecoding : public ::testing::TestWithParam<const char*> {};

TEST_P(RaggedDecoding, EqualsADenseRunWithAMask) {
  constexpr int64_t kNewTokens = 24;
  const auto model =
      TransformerLm::load(golden_dir() / "models" / "tiny-gqa", {.dtype = at::kFloat});
  ASSERT_TRUE(model.ok()) << model.status();
  const GoldenFile golden(golden_dir() / "kvpress" / "tiny-gqa.safetensors");
  const auto policy = make_policy(GetParam(), nullptr);
  ASSERT_TRUE(policy.ok()) << policy.status();
  const auto state =
      (*model)->prefill(golden.get<int32_t>("300.prompt_ids"), {.needs = (*policy)->needs()});
  ASSERT_TRUE(state.ok()) << state.status();
  const std::shared_ptr<const PromptState> prompt = *state;
  const SelectionRequest request{policy->get(), {48}};
  const auto batch =
      select_entries(**model, prompt, {&request, 1},
                     {.max_new_tokens = kNewTokens, .stop_ids = {}, .keep_going = {}});
  ASSERT_TRUE(batch.ok() && batch->arms[0].ok());
  const Selection& selection = batch->arms[0]->result.selection;
  if (std::string(GetParam()) == "adakv") {
    EXPECT_NE(selection.kept[0][0].size(), selection.kept[0][1].size());
  }

  std::vector<ArmRequest> requests;
  requests.push_back({.cache = KvCache::compact(*prompt, selection, kNewTokens),
                      .first_logits = prompt->last_logits,
                      .max_new_tokens = kNewTokens});
  const auto replies = decode_greedy(**model, std::move(requests));
  ASSERT_TRUE(replies.ok()) << replies.status();
  const std::vector<int32_t>& tokens = replies->front().token_ids;
  ASSERT_EQ(tokens.size(), kNewTokens);

  DenseRun dense(**model, *prompt, selection);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const at::Tensor logits = dense.step(tokens[i]);
    EXPECT_EQ(logits.argmax().item<int64_t>(), tokens[i + 1]) << "token " << i + 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, RaggedDecoding, ::testing::Values("adakv", "pyramidkv", "snapkv"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace kvlab
