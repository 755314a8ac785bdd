// The invariants of every method, for lookahead_kv, which needs a real model and an adapter.
#include <gmock/gmock.h>

#include <algorithm>

#include "harness/base/status.h"
#include "harness/model/causal_lm.h"
#include "methods/registry.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

class LookaheadPolicy : public ::testing::Test {
 protected:
  SelectionResult select(Json params, int64_t budget) {
    params["adapter"] = (golden_dir() / "models" / "tiny-gqa.adapter.safetensors").string();
    params["accept_unknown_base"] = true;
    const auto policy = make_policy("lookahead_kv", params).value();
    const SelectionInput input{.prompt = prompt_.get(),
                               .config = &model_->config(),
                               .budget = {budget},
                               .model = model_.get()};
    return policy->select(input).value();
  }

  std::shared_ptr<CausalLm> model_ =
      CausalLm::load(golden_dir() / "models" / "tiny-gqa", {.dtype = at::kFloat}).value();
  std::shared_ptr<PromptState> prompt_ =
      model_
          ->prefill(GoldenFile(golden_dir() / "lookahead_kv" / "tiny-gqa.safetensors")
                        .get<int32_t>("prompt_ids"),
                    {.chunk_size = 2048, .needs = {.tail_queries = 8}})
          .value();
};

TEST_F(LookaheadPolicy, KeepsTheBudgetWithSinksAndWindow) {
  const int64_t prompt_len = prompt_->prompt_len();
  const int64_t heads = model_->config().num_layers * model_->config().num_kv_heads;
  for (const char* allocation : {"uniform", "pyramid", "adaptive"}) {
    for (const int64_t budget : {16L, 21L, prompt_len, prompt_len + 100}) {
      SCOPED_TRACE(::testing::Message() << allocation << " " << budget);
      const Selection selection =
          select({{"allocation", allocation}, {"sinks", 3}, {"window", 4}}, budget).selection;
      int64_t total = 0;
      for (const auto& layer : selection.kept) {
        for (const auto& head : layer) {
          total += static_cast<int64_t>(head.size());
          for (const int64_t always : {0L, 1L, 2L, prompt_len - 4, prompt_len - 1}) {
            EXPECT_TRUE(std::binary_search(head.begin(), head.end(), always)) << always;
          }
        }
      }
      EXPECT_EQ(total, heads * std::min(budget, prompt_len));
    }
  }
}

TEST_F(LookaheadPolicy, LeavesNothingBehind) {
  std::vector<at::Tensor> before;
  for (const LayerState& layer : prompt_->layers) {
    before.push_back(layer.keys.clone());
    before.push_back(layer.values.clone());
  }
  const Selection first = select(Json::object(), 24).selection;
  const Selection second = select(Json::object(), 24).selection;
  EXPECT_EQ(first.kept, second.kept);
  for (size_t layer = 0; layer < prompt_->layers.size(); ++layer) {
    EXPECT_TRUE(at::equal(prompt_->layers[layer].keys, before[2 * layer]));
    EXPECT_TRUE(at::equal(prompt_->layers[layer].values, before[2 * layer + 1]));
  }
}

}  // namespace
}  // namespace kvlab
