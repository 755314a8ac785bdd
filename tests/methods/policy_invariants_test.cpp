// What holds for every method, whatever its scores.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/status.h"
#include "methods/registry.h"
#include "tests/methods/synthetic_prompt.h"

namespace kvlab {
namespace {

struct Case {
  std::string method;
  Json params = Json::object();
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.method;
  for (const auto& [key, value] : info.param.params.items()) {
    name += "_" + key + "_" + (value.is_string() ? value.get<std::string>() : value.dump());
  }
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

// Every method with every allocation, some with sinks.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const MethodInfo& info : list_methods()) {
    if (info.name == "lookahead_kv") {
      continue;  // needs a model: lookahead_policy_test.cpp
    }
    all.push_back({info.name});
    if (!info.needs_budget) {
      continue;
    }
    for (const char* allocation : {"uniform", "pyramid", "adaptive"}) {
      all.push_back({info.name, {{"allocation", allocation}, {"sinks", 3}}});
    }
    // How scores are turned into a choice, for scores of every kind and layout.
    for (const Json& reduction : {Json{{"head_scope", "layer"}, {"pooling", "avg"}},
                                  Json{{"head_scope", "kv_head"}, {"pooling", "max"}},
                                  Json{{"pooling", "max"}, {"pool_order", "before_group"}},
                                  Json{{"head_scope", "layer"}, {"allocation", "adaptive"}}}) {
      all.push_back({info.name, reduction});
    }
    for (const MethodVariant& variant : info.variants) {
      all.push_back({info.name, {{"variant", variant.name}}});
    }
  }
  return all;
}

class EveryMethod : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto made = make_policy(GetParam().method, GetParam().params);
    ASSERT_TRUE(made.ok()) << made.status();
    policy_ = *std::move(made);
  }

  absl::StatusOr<SelectionResult> select(const PromptState& prompt, const Draft* draft,
                                         int64_t budget) const {
    const SelectionInput input{.prompt = &prompt,
                               .config = &config_,
                               .budget = {budget},
                               .draft = draft,
                               .model = nullptr};
    const auto request = policy_->draft_request(input);
    if (!request.ok()) {
      return request.status();
    }
    return policy_->select(input);
  }

  int64_t param(const char* name) const {
    const Json& params = policy_->resolved_params();
    return params.contains(name) ? params.at(name).get<int64_t>() : 0;
  }
  std::string text(const char* name) const {
    const Json& params = policy_->resolved_params();
    return params.contains(name) ? params.at(name).get<std::string>() : "";
  }
  int64_t window() const { return std::max(param("window"), param("stage2_window")); }

  // Roundings whose total is not exact by design.
  bool overshoots() const {
    return (text("allocation") == "pyramid" && text("pyramid_rounding") != "exact") ||
           (text("allocation") == "adaptive" && text("adaptive_rounding") == "adakv");
  }

  SyntheticShape shape_;
  ModelConfig config_ = synthetic_config(shape_);
  std::shared_ptr<PromptState> prompt_ = synthetic_prompt(shape_);
  Draft draft_ = synthetic_draft(shape_, 5);
  std::unique_ptr<EvictionPolicy> policy_;
};

void expect_well_formed(const Selection& selection, const SyntheticShape& shape) {
  ASSERT_EQ(selection.prompt_len, shape.prompt_len);
  ASSERT_EQ(static_cast<int64_t>(selection.kept.size()), shape.num_layers);
  for (const auto& layer : selection.kept) {
    ASSERT_EQ(static_cast<int64_t>(layer.size()), shape.num_kv_heads);
    for (const auto& head : layer) {
      ASSERT_TRUE(std::is_sorted(head.begin(), head.end()));
      ASSERT_TRUE(std::adjacent_find(head.begin(), head.end()) == head.end());
      ASSERT_TRUE(head.empty() || (head.front() >= 0 && head.back() < shape.prompt_len));
    }
  }
}

TEST_P(EveryMethod, KeepsTheBudgetExactly) {
  for (const int64_t budget : {75, 80, 97, 149}) {
    const auto result = select(*prompt_, &draft_, budget);
    ASSERT_TRUE(result.ok()) << result.status();
    const Selection& selection = result->selection;
    expect_well_formed(selection, shape_);
    if (GetParam().method == "full") {
      EXPECT_EQ(selection.total_entries(),
                shape_.num_layers * shape_.num_kv_heads * shape_.prompt_len);
      continue;
    }
    if (overshoots()) {
      continue;
    }
    EXPECT_EQ(selection.total_entries(), shape_.num_layers * shape_.num_kv_heads * budget);
    for (const auto& layer : selection.kept) {
      int64_t in_layer = 0;
      for (const auto& head : layer) {
        in_layer += static_cast<int64_t>(head.size());
        if (text("allocation") == "uniform") {
          EXPECT_EQ(static_cast<int64_t>(head.size()), budget);
        }
      }
      if (text("allocation") == "adaptive") {
        EXPECT_EQ(in_layer, shape_.num_kv_heads * budget);
      }
    }
  }
}

TEST_P(EveryMethod, OneScopeIsOneChoice) {
  if (text("head_scope") != "layer") {
    GTEST_SKIP() << "every head by itself";
  }
  const auto result = select(*prompt_, &draft_, 80);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& layer : result->selection.kept) {
    for (const auto& head : layer) {
      EXPECT_EQ(head, layer.front());
    }
  }
}

TEST_P(EveryMethod, KeepsSinksAndWindow) {
  const int64_t budget = 90;
  const auto result = select(*prompt_, &draft_, budget);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const auto& layer : result->selection.kept) {
    for (const auto& head : layer) {
      for (int32_t position = 0; position < param("sinks"); ++position) {
        EXPECT_TRUE(std::binary_search(head.begin(), head.end(), position));
      }
      const int64_t recent =
          GetParam().method == "h2o" && policy_->resolved_params().at("recent_share") == 0.5
              ? budget / 2
              : window();
      for (int64_t position = shape_.prompt_len - recent; position < shape_.prompt_len;
           ++position) {
        EXPECT_TRUE(std::binary_search(head.begin(), head.end(), static_cast<int32_t>(position)));
      }
    }
  }
}

TEST_P(EveryMethod, KeepsEverythingWhenTheBudgetCoversThePrompt) {
  for (const int64_t budget : {shape_.prompt_len, shape_.prompt_len + 1, int64_t{100000}}) {
    const auto result = select(*prompt_, /*draft=*/nullptr, budget);
    ASSERT_TRUE(result.ok()) << result.status();
    expect_well_formed(result->selection, shape_);
    EXPECT_EQ(result->selection.total_entries(),
              shape_.num_layers * shape_.num_kv_heads * shape_.prompt_len);
  }
}

TEST_P(EveryMethod, PromptsShorterThanTheWindowAreKept) {
  SyntheticShape small = shape_;
  small.prompt_len = 3;
  const auto result = select(*synthetic_prompt(small), nullptr, 75);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->selection.total_entries(), small.num_layers * small.num_kv_heads * 3);
}

TEST_P(EveryMethod, RefusesABudgetThatCannotHoldWhatIsAlwaysKept) {
  if (GetParam().method == "full") {
    EXPECT_TRUE(policy_->check(config_, Budget{1}).ok());
    return;
  }
  EXPECT_FALSE(policy_->check(config_, Budget{0}).ok());
  const int64_t kept_anyway = window() + param("sinks");
  if (kept_anyway > 1) {
    EXPECT_FALSE(policy_->check(config_, Budget{kept_anyway - 1}).ok());
    EXPECT_FALSE(select(*prompt_, &draft_, kept_anyway - 1).ok());
  }
  EXPECT_TRUE(policy_->check(config_, Budget{80}).ok()) << policy_->check(config_, Budget{80});
  EXPECT_TRUE(policy_->check(config_, std::nullopt).ok());
}

TEST_P(EveryMethod, DoesNotDependOnTheOrderOfSamples) {
  SyntheticShape other_shape = shape_;
  other_shape.seed = 77;
  other_shape.prompt_len = 133;
  const auto other = synthetic_prompt(other_shape);
  const auto before = select(*prompt_, &draft_, 80);
  ASSERT_TRUE(select(*other, &draft_, 90).ok());
  const auto after = select(*prompt_, &draft_, 80);
  auto remade = make_policy(GetParam().method, GetParam().params);
  ASSERT_TRUE(remade.ok() && before.ok() && after.ok());
  policy_ = *std::move(remade);
  ASSERT_TRUE(select(*other, &draft_, 90).ok());
  EXPECT_EQ(before->selection.kept, after->selection.kept);
  EXPECT_EQ(before->selection.kept, select(*prompt_, &draft_, 80)->selection.kept);
}

TEST_P(EveryMethod, LeavesThePromptStateUntouched) {
  const auto copy = synthetic_prompt(shape_);
  ASSERT_TRUE(select(*prompt_, &draft_, 80).ok());
  for (size_t layer = 0; layer < copy->layers.size(); ++layer) {
    const LayerState& a = copy->layers[layer];
    const LayerState& b = prompt_->layers[layer];
    EXPECT_TRUE(a.keys.equal(b.keys) && a.values.equal(b.values) &&
                a.tail_queries.equal(b.tail_queries) && a.attention_sums.equal(b.attention_sums) &&
                a.query_mean.equal(b.query_mean) && a.query_covariance.equal(b.query_covariance));
  }
}

TEST_P(EveryMethod, TakesBfloat16Prompts) {
  SyntheticShape half = shape_;
  half.dtype = at::kBFloat16;
  const Draft draft = synthetic_draft(half, 5);
  const auto result = select(*synthetic_prompt(half), &draft, 80);
  ASSERT_TRUE(result.ok()) << result.status();
  expect_well_formed(result->selection, half);
}

TEST_P(EveryMethod, BrokenNumbersAreAnErrorNotASelection) {
  const std::string method = GetParam().method;
  if (method == "full" || method == "random" || method == "streaming_llm") {
    GTEST_SKIP() << "reads no numbers";
  }
  for (LayerState& layer : prompt_->layers) {
    layer.keys.fill_(std::numeric_limits<float>::quiet_NaN());
    layer.attention_sums.fill_(std::numeric_limits<float>::infinity());
  }
  EXPECT_FALSE(select(*prompt_, &draft_, 80).ok());
}

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, ::testing::ValuesIn(cases()), name_of);

TEST(StreamingLlm, PoolingAndScopeDoNotChangeWhatIsLast) {
  const SyntheticShape shape;
  const ModelConfig config = synthetic_config(shape);
  const auto prompt = synthetic_prompt(shape);
  const auto kept = [&](const Json& params) {
    return (*make_policy("streaming_llm", params))
        ->select({.prompt = prompt.get(),
                  .config = &config,
                  .budget = {20},
                  .draft = nullptr,
                  .model = nullptr})
        ->selection.kept;
  };
  const auto plain = kept(Json::object());
  EXPECT_EQ(plain, kept({{"head_scope", "layer"}}));
  EXPECT_EQ(plain, kept({{"head_scope", "layer"}, {"group_reduction", "max"}}));
}

TEST(Random, DependsOnSeedPromptLayerAndHead) {
  const SyntheticShape shape;
  const auto prompt = synthetic_prompt(shape);
  const auto kept = [&](const PromptState& state, int64_t seed) {
    const auto policy = make_policy("random", {{"seed", seed}});
    return (*policy)
        ->select({.prompt = &state,
                  .config = nullptr,
                  .budget = {40},
                  .draft = nullptr,
                  .model = nullptr})
        ->selection.kept;
  };
  const auto base = kept(*prompt, 0);
  EXPECT_EQ(base, kept(*prompt, 0));
  EXPECT_NE(base, kept(*prompt, 1));
  EXPECT_NE(base[0], base[1]);
  EXPECT_NE(base[0][0], base[0][1]);
  prompt->token_ids.back() += 1;
  EXPECT_NE(base, kept(*prompt, 0));
}

}  // namespace
}  // namespace kvlab
