// The default model against transformers: logits and 64 greedy tokens at 20, 500 and 4,000 tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "tests/harness/model/golden_file.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

constexpr float kLogitTolerance = 1e-3F;
constexpr int64_t kNumTokens = 64;

class SmolLm2 : public testing::Test {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
    model_dir_ = dir;
    golden_ = std::make_unique<GoldenFile>(golden_dir() / "transformers" / "smollm2.safetensors");
  }

  std::shared_ptr<CausalLm> load(at::ScalarType dtype) {
    auto model = CausalLm::load(model_dir_, {.dtype = dtype});
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  std::vector<int32_t> decode(CausalLm& model, const std::shared_ptr<PromptState>& state) {
    std::vector<ArmRequest> requests;
    requests.push_back({.cache = KvCache::full(state, kNumTokens),
                        .first_logits = state->last_logits,
                        .max_new_tokens = kNumTokens});
    auto replies = decode_greedy(model, std::move(requests));
    EXPECT_TRUE(replies.ok()) << replies.status();
    return replies->front().token_ids;
  }

  // Largest difference over the ids the golden file lists.
  float logit_difference(const at::Tensor& logits, const std::string& name,
                         const std::string& which) {
    const auto ids = golden_->get<int32_t>(name + "." + which + "_ids");
    const auto values = golden_->get<float>(name + "." + which + "_logits");
    float largest = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const float difference = std::fabs(logits.const_data_ptr<float>()[ids[i]] - values[i]);
      largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
    }
    return largest;
  }

  void expect_equal_to_transformers(CausalLm& model, const std::string& name, int64_t chunk_size) {
    SCOPED_TRACE(name + " tokens in chunks of " + std::to_string(chunk_size));
    const auto ids = golden_->get<int32_t>(name + ".prompt_ids");
    const auto state = model.prefill(ids, {.chunk_size = chunk_size, .needs = {}});
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_LT(logit_difference((*state)->last_logits, name, "top"), kLogitTolerance);
    EXPECT_LT(logit_difference((*state)->last_logits, name, "fixed"), kLogitTolerance);
    EXPECT_EQ(decode(model, *state), golden_->get<int32_t>(name + ".greedy_ids"));
  }

  std::filesystem::path model_dir_;
  std::unique_ptr<GoldenFile> golden_;
};

TEST_F(SmolLm2, LogitsAndTokensEqualTransformersAt20And500Tokens) {
  const auto model = load(at::kFloat);
  for (const char* name : {"20", "500"}) {
    expect_equal_to_transformers(*model, name, 2048);
  }
}

TEST_F(SmolLm2, ChunkSizesGiveTheSameTokensAt500Tokens) {
  const auto model = load(at::kFloat);
  for (const int64_t chunk_size : {1, 7, 512}) {
    expect_equal_to_transformers(*model, "500", chunk_size);
  }
}

TEST_F(SmolLm2, LogitsAndTokensEqualTransformersAt4000Tokens) {
  const auto model = load(at::kFloat);
  for (const int64_t chunk_size : {4000, 2048, 512}) {
    expect_equal_to_transformers(*model, "4000", chunk_size);
  }
}

TEST_F(SmolLm2, ChunksOf1And7GiveTheSameTokensAt4000Tokens) {
  const auto model = load(at::kFloat);
  for (const int64_t chunk_size : {7, 1}) {
    expect_equal_to_transformers(*model, "4000", chunk_size);
  }
}

TEST_F(SmolLm2, BFloat16AgreesOnTheBestTokens) {
  const auto model = load(at::kBFloat16);
  for (const char* name : {"20", "500", "4000"}) {
    const auto ids = golden_->get<int32_t>(std::string(name) + ".prompt_ids");
    const auto state = model->prefill(ids, {});
    ASSERT_TRUE(state.ok()) << state.status();
    // bfloat16 keeps 8 bits: logits near 20 are good to about 0.1 before layers add to it.
    EXPECT_LT(logit_difference((*state)->last_logits, name, "top"), 1.0F) << name;
  }
}

}  // namespace
}  // namespace kvlab
