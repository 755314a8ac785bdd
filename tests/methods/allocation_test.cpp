#include "methods/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "methods/choose.h"

namespace kvlab {
namespace {

using ::testing::ElementsAre;

int64_t sum(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{0});
}

TEST(LargestRemainder, GivesWhatIsLeftToTheLargestRemaindersEarlierFirst) {
  EXPECT_THAT(largest_remainder(std::vector<double>{1.2, 2.7, 3.1}, 7), ElementsAre(1, 3, 3));
  EXPECT_THAT(largest_remainder(std::vector<double>{0.5, 0.5, 1.0}, 2), ElementsAre(1, 0, 1));
  EXPECT_THAT(largest_remainder(std::vector<double>{2, 3}, 5), ElementsAre(2, 3));
}

TEST(LargestRemainder, TakesARoundingErrorForTheWholeNumber) {
  EXPECT_THAT(largest_remainder(std::vector<double>{2.9999999999999996, 1.0}, 4),
              ElementsAre(3, 1));
}

TEST(Pyramid, ExactFollowsTheLineAndKeepsTheTotal) {
  // mean 100 - 32 = 68; last 3.4, first 132.6: a line over 4 layers.
  const LayerBudgetInput input{
      .num_layers = 4, .prompt_len = 1000, .budget = 100, .sinks = 0, .window = 32};
  const std::vector<int64_t> budgets = pyramid_budgets(input, {});
  EXPECT_EQ(sum(budgets), 400);
  EXPECT_THAT(budgets, ElementsAre(133 + 32, 90 + 32, 46 + 32, 3 + 32));
}

TEST(Pyramid, ExactKeepsTheTotalOverManyShapes) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    LayerBudgetInput input;
    input.num_layers = 1 + static_cast<int64_t>(random() % 40);
    input.prompt_len = 50 + static_cast<int64_t>(random() % 3000);
    input.window = static_cast<int64_t>(random() % 33);
    input.sinks = static_cast<int64_t>(random() % 5);
    const int64_t least = input.window + input.sinks;
    input.budget = least + static_cast<int64_t>(random()) % (input.prompt_len - least);
    const double beta = 1 + static_cast<double>(random() % 30);
    const std::vector<int64_t> budgets = pyramid_budgets(input, {.beta = beta});
    ASSERT_EQ(sum(budgets), input.budget * input.num_layers);
    for (size_t layer = 0; layer < budgets.size(); ++layer) {
      ASSERT_GE(budgets[layer], least);
      ASSERT_LE(budgets[layer], input.prompt_len);
      ASSERT_TRUE(layer == 0 || budgets[layer] <= budgets[layer - 1] + 1);
    }
  }
}

TEST(Pyramid, ShortPromptsFlattenTheLine) {
  const LayerBudgetInput input{
      .num_layers = 3, .prompt_len = 120, .budget = 100, .sinks = 0, .window = 20};
  // mean 80, limit 100: first 100, last 60.
  EXPECT_THAT(pyramid_budgets(input, {}), ElementsAre(120, 100, 80));
}

// Worked by hand from the formulas of KVCache-Factory (docs/methods.md).
TEST(Pyramid, KvcacheFactoryRoundsByFloorDivision) {
  const LayerBudgetInput input{
      .num_layers = 4, .prompt_len = 1000, .budget = 100, .sinks = 0, .window = 8};
  // mean 92; last 92 // 20 = 4; first 180; step (180 - 4) // 3 = 58.
  EXPECT_THAT(pyramid_budgets(input, {.rounding = PyramidRounding::kKvcacheFactory}),
              ElementsAre(188, 130, 72, 14));
}

TEST(Pyramid, KvcacheFactoryIsUniformForPromptsBelowTwiceTheMean) {
  const LayerBudgetInput input{
      .num_layers = 4, .prompt_len = 180, .budget = 100, .sinks = 0, .window = 8};
  EXPECT_THAT(pyramid_budgets(input, {.rounding = PyramidRounding::kKvcacheFactory}),
              ElementsAre(100, 100, 100, 100));
}

// Worked by hand from the formulas of kvpress 0.5.5.
TEST(Pyramid, KvpressPutsTheWindowOnTopAndRoundsEachLayer) {
  const LayerBudgetInput input{
      .num_layers = 4, .prompt_len = 5000, .budget = 1500, .sinks = 0, .window = 64};
  // last 1500 / 20 = 75, first 2925; step 950.
  EXPECT_THAT(pyramid_budgets(input, {.rounding = PyramidRounding::kKvpress}),
              ElementsAre(2925, 1975, 1025, 75));
  // last 10 is below the window: uniform.
  const LayerBudgetInput small{
      .num_layers = 4, .prompt_len = 5000, .budget = 200, .sinks = 0, .window = 64};
  EXPECT_THAT(pyramid_budgets(small, {.rounding = PyramidRounding::kKvpress}),
              ElementsAre(200, 200, 200, 200));
}

TEST(Adaptive, MixesTheShareByScoreWithTheFloor) {
  // Head 0 has the 6 best of 6 places; floor 0.5 of 3.
  const std::vector<float> scores = {9, 8, 7, 6, 5, 4, 1, 1, 1, 1, 1, 1};
  const HeadBudgetInput input{
      .scores = scores, .num_heads = 2, .num_candidates = 6, .budget = 3, .protected_entries = 0};
  EXPECT_THAT(adaptive_counts(input, {.floor = 0}), ElementsAre(6, 0));
  EXPECT_THAT(adaptive_counts(input, {.floor = 1}), ElementsAre(3, 3));
  // 6 * 0.5 + 1.5 = 4.5 and 1.5: the remainder goes to the first.
  EXPECT_THAT(adaptive_counts(input, {.floor = 0.5}), ElementsAre(5, 1));
  // Each by itself, halves to even: 4 and 2.
  EXPECT_THAT(adaptive_counts(input, {.floor = 0.5, .rounding = AdaptiveRounding::kAdakv}),
              ElementsAre(4, 2));
  // kvpress: int(3 * 0.5) = 1 safe entry each, the other 4 by score.
  EXPECT_THAT(adaptive_counts(input, {.floor = 0.5, .rounding = AdaptiveRounding::kKvpress}),
              ElementsAre(5, 1));
}

TEST(Adaptive, NormalizingWeighsHeadsByTheirConcentration) {
  // Head 0 is flat (its best 2 hold half of it), head 1 concentrated.
  const std::vector<float> scores = {3, 3, 3, 3, 5, 4, 0.5F, 0.5F};
  const HeadBudgetInput input{
      .scores = scores, .num_heads = 2, .num_candidates = 4, .budget = 2, .protected_entries = 0};
  EXPECT_THAT(adaptive_counts(input, {.floor = 0}), ElementsAre(2, 2));
  const std::vector<float> closer = {3, 3, 3, 3, 2.5F, 2.4F, 0, 0};
  HeadBudgetInput other = input;
  other.scores = closer;
  EXPECT_THAT(adaptive_counts(other, {.floor = 0}), ElementsAre(4, 0));
  EXPECT_THAT(adaptive_counts(other, {.floor = 0, .normalize = true}), ElementsAre(2, 2));
}

TEST(Adaptive, KeepsTheSumAndTheLimitsOverManyShapes) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (int trial = 0; trial < 2000; ++trial) {
    HeadBudgetInput input;
    input.num_heads = 1 + static_cast<int64_t>(random() % 8);
    input.num_candidates = 1 + static_cast<int64_t>(random() % 60);
    input.protected_entries = static_cast<int64_t>(random() % 10);
    const auto base = static_cast<int64_t>(random()) % (input.num_candidates + 1);
    input.budget = base + input.protected_entries;
    std::vector<float> scores(input.num_heads * input.num_candidates);
    for (float& score : scores) {
      // Coarse values, so that ties are common; squared, so that heads differ.
      score = std::floor(uniform(random) * 8) * static_cast<float>(random() % 5);
    }
    input.scores = scores;
    const double floor = static_cast<double>(random() % 11) / 10;
    const bool normalize = random() % 2 == 0;
    for (const auto rounding : {AdaptiveRounding::kExact, AdaptiveRounding::kKvpress}) {
      const std::vector<int64_t> counts =
          adaptive_counts(input, {.floor = floor, .rounding = rounding, .normalize = normalize});
      ASSERT_EQ(sum(counts), input.num_heads * base);
      for (const int64_t count : counts) {
        ASSERT_LE(count, input.num_candidates);
        ASSERT_GE(count, static_cast<int64_t>(floor * static_cast<double>(base)) -
                             (rounding == AdaptiveRounding::kExact ? 0 : base));
      }
    }
  }
}

TEST(Choose, KeepsSinksWindowAndTheBestOfTheRest) {
  const std::vector<float> scores = {0, 0, 5, 1, 4, 3, 2, 0, 9, 9,  //
                                     0, 0, 1, 2, 3, 4, 5, 0, 0, 0};
  const ChooseInput input{.scores = scores,
                          .num_kv_heads = 2,
                          .prompt_len = 10,
                          .budget = 5,
                          .sinks = 1,
                          .window = 2,
                          .adaptive = std::nullopt};
  EXPECT_THAT(choose_entries(input),
              ElementsAre(ElementsAre(0, 2, 4, 8, 9), ElementsAre(0, 5, 6, 8, 9)));
}

TEST(Choose, EqualScoresKeepTheEarlierEntry) {
  const std::vector<float> scores(8, 1.0F);
  const ChooseInput input{.scores = scores,
                          .num_kv_heads = 1,
                          .prompt_len = 8,
                          .budget = 3,
                          .sinks = 0,
                          .window = 0,
                          .adaptive = std::nullopt};
  EXPECT_THAT(choose_entries(input), ElementsAre(ElementsAre(0, 1, 2)));
}

}  // namespace
}  // namespace kvlab
