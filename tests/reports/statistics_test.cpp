// Statistics against SciPy's and statsmodels' on the same numbers
// (tests/golden/make_statistics.py).
#include "reports/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "reports/paired.h"

namespace kvlab {
namespace {

constexpr double kClose = 1e-9;

const Json& golden() {
  static const Json json = [] {
    const auto text = read_file(std::string(KVLAB_TEST_DIR) + "/golden/statistics.json");
    return parse_json(text.value(), "statistics.json").value();
  }();
  return json;
}

std::vector<double> numbers(const Json& json) { return json.get<std::vector<double>>(); }

Moments moments(const std::vector<double>& values) {
  Moments all;
  for (const double value : values) {
    all.add(value);
  }
  return all;
}

void expect_close(double value, const Json& expected) {
  const double want = expected.get<double>();
  EXPECT_NEAR(value, want, kClose * std::max(1.0, std::abs(want)));
}

TEST(Statistics, TIntervalsEqualScipys) {
  for (const Json& c : golden().at("t_intervals")) {
    SCOPED_TRACE(c.at("name"));
    const Estimate estimate = t_interval(moments(numbers(c.at("values"))));
    expect_close(estimate.mean, c.at("mean"));
    expect_close(estimate.standard_error, c.at("standard_error"));
    expect_close(estimate.low.value(), c.at("low"));
    expect_close(estimate.high.value(), c.at("high"));
  }
  EXPECT_FALSE(t_interval(moments({50})).low.has_value());
}

TEST(Statistics, MeansOfMeansEqualWelchsInterval) {
  for (const Json& c : golden().at("means_of_means")) {
    std::vector<Moments> groups;
    for (const Json& values : c.at("groups")) {
      groups.push_back(moments(numbers(values)));
    }
    const Estimate estimate = mean_of_means(groups);
    expect_close(estimate.mean, c.at("mean"));
    expect_close(estimate.degrees, c.at("degrees"));
    expect_close(estimate.low.value(), c.at("low"));
    expect_close(estimate.high.value(), c.at("high"));
  }
}

TEST(Statistics, MedianIntervalsEqualScipysQuantileTest) {
  int with_interval = 0;
  for (const Json& c : golden().at("medians")) {
    const std::vector<double> values = numbers(c.at("values"));
    SCOPED_TRACE(values.size());
    const Estimate estimate = median_interval(values);
    expect_close(estimate.mean, c.at("median"));
    ASSERT_EQ(estimate.low.has_value(), !c.at("low").is_null());
    if (estimate.low) {
      ++with_interval;
      expect_close(*estimate.low, c.at("low"));
      expect_close(*estimate.high, c.at("high"));
    }
  }
  EXPECT_GT(with_interval, 3);
}

TEST(Statistics, QuantilesEqualNumpys) {
  for (const Json& c : golden().at("quantiles")) {
    std::vector<double> values = numbers(c.at("values"));
    expect_close(quantile(values, c.at("q").get<double>()), c.at("value"));
  }
}

TEST(Statistics, BootstrapWithTheSameIndicesEqualsScipys) {
  for (const Json& c : golden().at("bootstraps")) {
    const std::vector<double> values = numbers(c.at("values"));
    const auto indices = c.at("indices").get<std::vector<uint32_t>>();
    const std::vector<double> means = resampled_means(values, indices);
    const std::vector<double> expected = numbers(c.at("means"));
    ASSERT_EQ(means.size(), expected.size());
    for (size_t i = 0; i < means.size(); ++i) {
      EXPECT_NEAR(means[i], expected[i], kClose * 100);
    }
    const auto [low, high] = percentile_interval(means);
    expect_close(low, c.at("low"));
    expect_close(high, c.at("high"));
  }
}

// The program's own draws: the fast path must be the plain one with the same random numbers.
TEST(Statistics, DrawnBootstrapMeansAreResampledMeansOfTheDrawnIndices) {
  const std::vector<double> values = {0, 20, 100, 80, 80, 60, 100};
  ResamplingRandom drawn(7);
  const std::vector<double> means = bootstrap_means(values, 500, drawn);
  ResamplingRandom again(7);
  std::vector<uint32_t> indices(500 * values.size());
  for (uint32_t& index : indices) {
    index = again.below(static_cast<uint32_t>(values.size()));
    ASSERT_LT(index, values.size());
  }
  const std::vector<double> expected = resampled_means(values, indices);
  ASSERT_EQ(means.size(), expected.size());
  for (size_t i = 0; i < means.size(); ++i) {
    EXPECT_NEAR(means[i], expected[i], 1e-9);
  }
}

TEST(Statistics, DrawsAreUniformAndTheSameEverywhere) {
  ResamplingRandom random(1);
  // std::mt19937_64 is fixed by the standard; so are these.
  EXPECT_EQ(random.bits(), 2469588189546311528U);
  std::vector<int64_t> counts(5, 0);
  for (int i = 0; i < 50'000; ++i) {
    ++counts[random.below(5)];
  }
  for (const int64_t count : counts) {
    EXPECT_NEAR(static_cast<double>(count), 10'000, 450);  // five standard deviations
  }
}

TEST(Statistics, PermutationTestEqualsScipys) {
  for (const Json& c : golden().at("permutations")) {
    std::vector<std::vector<double>> groups;
    size_t differing = 0;
    for (const Json& values : c.at("groups")) {
      groups.push_back(numbers(values));
      differing += groups.back().size() -
                   static_cast<size_t>(std::count(groups.back().begin(), groups.back().end(), 0.0));
    }
    ResamplingRandom random(2);
    const double p = permutation_p(groups, 40'000, random);
    const double expected = c.at("p").get<double>();
    if (differing <= kMaxExactPairs) {
      EXPECT_NEAR(p, expected, 1e-12);
    } else {
      EXPECT_NEAR(p, expected, 5 * std::sqrt(expected * (1 - expected) / 40'000) + 1e-4);
    }
  }
  ResamplingRandom random(2);
  const std::vector<std::vector<double>> nothing = {{0, 0, 0}};
  EXPECT_EQ(permutation_p(nothing, 1000, random), 1);
}

TEST(Statistics, HolmEqualsStatsmodels) {
  for (const Json& c : golden().at("holm")) {
    const std::vector<double> adjusted = holm(numbers(c.at("p")));
    const std::vector<double> expected = numbers(c.at("holm"));
    ASSERT_EQ(adjusted.size(), expected.size());
    for (size_t i = 0; i < adjusted.size(); ++i) {
      EXPECT_NEAR(adjusted[i], expected[i], 1e-12);
    }
  }
}

TEST(Statistics, DetectableDifferencesEqualScipysAndComeCloseToAPowerAnalysis) {
  for (const Json& c : golden().at("detectable")) {
    const auto difference = minimal_detectable_difference(c.at("standard_error").get<double>(),
                                                          c.at("n").get<double>() - 1);
    ASSERT_TRUE(difference.has_value());
    expect_close(*difference, c.at("difference"));
    EXPECT_NEAR(*difference / c.at("by_power_analysis").get<double>(), 1, 0.05);
  }
  EXPECT_FALSE(minimal_detectable_difference(1, 0).has_value());
}

}  // namespace
}  // namespace kvlab
