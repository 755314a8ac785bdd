#include "methods/attention_mass/score_reduction.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "methods/attention_mass/top_k.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

TEST(ReduceGroupTest, TakesEachKvHeadsOwnQueryHeads) {
  // Four query heads, two KV heads, two keys.
  const std::vector<float> scores = {1, 2, 5, 4, 10, 20, 30, 60};
  std::vector<float> out(4);
  reduce_group(GroupReduction::kMean, scores.data(), 4, 2, 2, out.data());
  EXPECT_EQ(out, (std::vector<float>{3, 3, 20, 40}));
  reduce_group(GroupReduction::kMax, scores.data(), 4, 2, 2, out.data());
  EXPECT_EQ(out, (std::vector<float>{5, 4, 30, 60}));
  reduce_group(GroupReduction::kSum, scores.data(), 4, 2, 2, out.data());
  EXPECT_EQ(out, (std::vector<float>{6, 6, 40, 80}));
  // The first key of each row alone.
  std::vector<float> first(2);
  reduce_group(GroupReduction::kSum, scores.data(), 4, 2, 1, first.data(), 2);
  EXPECT_EQ(first, (std::vector<float>{6, 40}));
}

// Each window by itself.
float pooled(PoolKind kind, int64_t kernel, const std::vector<float>& row, int64_t key) {
  double sum = 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t k = key - kernel / 2; k <= key + kernel / 2; ++k) {
    if (k >= 0 && k < static_cast<int64_t>(row.size())) {
      sum += row[k];
      largest = std::max(largest, row[k]);
    }
  }
  return kind == PoolKind::kMax ? largest : static_cast<float>(sum / static_cast<double>(kernel));
}

TEST(PoolScoresTest, AgreesWithEachWindowTakenByItself) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const int64_t rows = pick(random, 1, 3);
    const int64_t keys = pick(random, 1, 40);
    const int64_t kernel = 2 * pick(random, 0, 8) + 1;  // also wider than the row
    const PoolKind kind = pick_of(random, {PoolKind::kMax, PoolKind::kAverage});
    const int64_t stride = keys + pick(random, 0, 3);
    std::vector<float> scores(rows * stride);
    for (float& score : scores) {
      score = static_cast<float>(pick(random, -50, 50)) / 8;
    }
    std::vector<float> out(rows * keys);
    pool_scores(kind, kernel, scores.data(), rows, keys, out.data(), stride);
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = scores.begin() + row * stride;
      const std::vector<float> one(first, first + keys);
      for (int64_t key = 0; key < keys; ++key) {
        ASSERT_NEAR(out[row * keys + key], pooled(kind, kernel, one, key), 1e-5);
      }
    }
  }
}

TEST(PoolScoresTest, NoneCopies) {
  const std::vector<float> scores = {3, 1, 2};
  std::vector<float> out(3);
  pool_scores(PoolKind::kNone, 7, scores.data(), 1, 3, out.data());
  EXPECT_EQ(out, scores);
}

TEST(TopPositionsTest, AgreesWithAStableSortAndComesAscending) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 3000; ++round) {
    const int64_t size = pick(random, 1, 60);
    std::vector<float> scores(size);
    for (float& score : scores) {
      score = static_cast<float>(pick(random, 0, 9));  // many ties
    }
    const int64_t count = pick(random, 0, size);
    std::vector<int32_t> order(size);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
    order.resize(count);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(top_positions(scores, count), order);
  }
}

TEST(TopPositionsTest, NanIsBelowEverything) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float low = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(top_positions(std::vector<float>{nan, low, nan, 1}, 2), (std::vector<int32_t>{1, 3}));
  EXPECT_EQ(top_positions(std::vector<float>{nan, low, nan, 1}, 3),
            (std::vector<int32_t>{0, 1, 3}));
}

}  // namespace
}  // namespace kvlab
