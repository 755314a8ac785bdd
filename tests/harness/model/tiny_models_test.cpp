// Random-weight checkpoints of every family against transformers' logits and greedy tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "harness/model/threads.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

constexpr float kLogitTolerance = 1e-3F;
constexpr int64_t kNumTokens = 64;

float largest_difference(const at::Tensor& logits, const std::vector<float>& golden) {
  const at::Tensor plain = logits.contiguous();
  EXPECT_EQ(plain.numel(), static_cast<int64_t>(golden.size()));
  float largest = 0;
  for (size_t i = 0; i < golden.size(); ++i) {
    const float difference = std::fabs(plain.const_data_ptr<float>()[i] - golden[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

class TinyModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_compute_threads(1);
    auto model = CausalLm::load(golden_dir() / "models" / GetParam(), {.dtype = at::kFloat});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  std::shared_ptr<PromptState> prefill(const std::vector<int32_t>& ids, int64_t chunk_size) {
    auto state = model_->prefill(ids, {.chunk_size = chunk_size, .needs = {}});
    EXPECT_TRUE(state.ok()) << state.status();
    return *std::move(state);
  }

  std::vector<int32_t> decode(const std::shared_ptr<PromptState>& state) {
    std::vector<ArmRequest> requests;
    requests.push_back({.cache = KvCache::full(state, kNumTokens),
                        .first_logits = state->last_logits,
                        .max_new_tokens = kNumTokens});
    auto replies = decode_greedy(*model_, std::move(requests));
    EXPECT_TRUE(replies.ok()) << replies.status();
    return replies->front().token_ids;
  }

  GoldenFile golden_{golden_dir() / "transformers" / (std::string(GetParam()) + ".safetensors")};
  std::shared_ptr<CausalLm> model_;
};

TEST_P(TinyModel, LogitsAndGreedyTokensEqualTransformers) {
  for (const std::string& name : golden_.cases()) {
    const auto ids = golden_.get<int32_t>(name + ".prompt_ids");
    const auto state = prefill(ids, 2048);
    EXPECT_LT(largest_difference(state->last_logits, golden_.get<float>(name + ".logits")),
              kLogitTolerance)
        << name;
    EXPECT_EQ(decode(state), golden_.get<int32_t>(name + ".greedy_ids")) << name;
  }
}

TEST_P(TinyModel, ChunkSizesGiveTheSameTokens) {
  for (const std::string& name : golden_.cases()) {
    const auto ids = golden_.get<int32_t>(name + ".prompt_ids");
    for (const int64_t chunk_size : {1, 7, 512}) {
      const auto state = prefill(ids, chunk_size);
      EXPECT_LT(largest_difference(state->last_logits, golden_.get<float>(name + ".logits")),
                kLogitTolerance)
          << name << ", chunks of " << chunk_size;
      EXPECT_EQ(decode(state), golden_.get<int32_t>(name + ".greedy_ids"))
          << name << ", chunks of " << chunk_size;
    }
  }
}

TEST_P(TinyModel, TheLastDecodedRowEqualsTransformers) {
  for (const std::string& name : golden_.cases()) {
    const auto ids = golden_.get<int32_t>(name + ".prompt_ids");
    const auto reply = golden_.get<int32_t>(name + ".greedy_ids");
    const auto state = prefill(ids, 2048);
    KvCache cache = KvCache::full(state, kNumTokens);
    const std::span<const int32_t> fed = std::span(reply).first(reply.size() - 1);
    const auto logits = model_->extend(fed, cache, nullptr);
    ASSERT_TRUE(logits.ok()) << logits.status();
    EXPECT_LT(largest_difference(*logits, golden_.get<float>(name + ".last_logits")),
              kLogitTolerance)
        << name;
    EXPECT_EQ(cache.next_position(), static_cast<int64_t>(ids.size() + fed.size()));
  }
}

TEST_P(TinyModel, BFloat16StaysNearFloat32) {
  auto model = CausalLm::load(golden_dir() / "models" / GetParam(), {.dtype = at::kBFloat16});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const std::string& name : golden_.cases()) {
    const auto ids = golden_.get<int32_t>(name + ".prompt_ids");
    const auto state = (*model)->prefill(ids, {});
    ASSERT_TRUE(state.ok()) << state.status();
    const auto golden = golden_.get<float>(name + ".logits");
    float scale = 0;
    for (const float logit : golden) {
      scale = std::max(scale, std::fabs(logit));
    }
    EXPECT_LT(largest_difference((*state)->last_logits, golden), 0.1F * scale) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         testing::Values("tiny-llama3", "tiny-llama-linear", "tiny-llama-yarn",
                                         "tiny-qwen2", "tiny-qwen3", "tiny-mistral",
                                         "tiny-mistral-window", "tiny-gqa", "tiny-sharded"),
                         [](const auto& param_info) {
                           std::string name = param_info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace kvlab
