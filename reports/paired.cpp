#include "reports/paired.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <numeric>

#include "harness/base/check.h"

namespace kvlab {
namespace {

// A difference of group g counts 1 / (groups * size of g) in the statistic.
std::vector<double> weighted_differences(std::span<const std::vector<double>> groups) {
  std::vector<double> weighted;
  for (const std::vector<double>& group : groups) {
    for (const double difference : group) {
      if (difference != 0) {
        weighted.push_back(
            difference / (static_cast<double>(groups.size()) * static_cast<double>(group.size())));
      }
    }
  }
  return weighted;
}

}  // namespace

std::vector<double> resampled_means(std::span<const double> values,
                                    std::span<const uint32_t> indices) {
  KVLAB_CHECK(!values.empty() && indices.size() % values.size() == 0);
  std::vector<double> means;
  means.reserve(indices.size() / values.size());
  for (size_t begin = 0; begin < indices.size(); begin += values.size()) {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sum += values[indices[begin + i]];
    }
    means.push_back(sum / static_cast<double>(values.size()));
  }
  return means;
}

std::vector<double> bootstrap_means(std::span<const double> values, int64_t resamples,
                                    ResamplingRandom& random) {
  KVLAB_CHECK(!values.empty());
  std::vector<double> means;
  means.reserve(static_cast<size_t>(resamples));
  // resampled_means() of indices drawn on the way.
  const auto n = static_cast<uint32_t>(values.size());
  for (int64_t r = 0; r < resamples; ++r) {
    double sum = 0;
    for (uint32_t i = 0; i < n; ++i) {
      sum += values[random.below(n)];
    }
    means.push_back(sum / static_cast<double>(n));
  }
  return means;
}

double permutation_p(std::span<const std::vector<double>> groups, int64_t permutations,
                     ResamplingRandom& random) {
  const std::vector<double> weighted = weighted_differences(groups);
  if (weighted.empty()) {
    return 1;
  }
  const double observed = std::abs(std::accumulate(weighted.begin(), weighted.end(), 0.0));
  // Sums of the same numbers in another order differ in the last bits.
  const double threshold = observed * (1 - 1e-9);
  const size_t n = weighted.size();
  if (n <= kMaxExactPairs) {
    int64_t hits = 0;
    const uint32_t patterns = 1u << n;
    for (uint32_t pattern = 0; pattern < patterns; ++pattern) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) {
        sum += ((pattern >> i) & 1) != 0 ? weighted[i] : -weighted[i];
      }
      hits += std::abs(sum) >= threshold ? 1 : 0;
    }
    return static_cast<double>(hits) / patterns;
  }
  // sum of +-d = 2 * (sum of the chosen) - (sum of all).
  const double all = std::accumulate(weighted.begin(), weighted.end(), 0.0);
  int64_t hits = 0;
  for (int64_t round = 0; round < permutations; ++round) {
    double chosen = 0;
    for (size_t begin = 0; begin < n; begin += 64) {
      uint64_t bits = random.bits();
      if (n - begin < 64) {
        bits &= (uint64_t{1} << (n - begin)) - 1;
      }
      for (; bits != 0; bits &= bits - 1) {
        chosen += weighted[begin + static_cast<size_t>(__builtin_ctzll(bits))];
      }
    }
    hits += std::abs(2 * chosen - all) >= threshold ? 1 : 0;
  }
  return static_cast<double>(hits + 1) / static_cast<double>(permutations + 1);
}

std::vector<double> holm(std::span<const double> p_values) {
  std::vector<size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p_values[a] < p_values[b]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto remaining = static_cast<double>(order.size() - rank);
    largest = std::max(largest, std::min(1.0, remaining * p_values[order[rank]]));
    adjusted[order[rank]] = largest;
  }
  return adjusted;
}

std::optional<double> minimal_detectable_difference(double standard_error, double degrees,
                                                    double alpha, double power) {
  if (!(degrees > 0) || !std::isfinite(degrees) || !(standard_error > 0)) {
    return std::nullopt;
  }
  const boost::math::students_t distribution(degrees);
  return (boost::math::quantile(distribution, 1 - alpha / 2) +
          boost::math::quantile(distribution, power)) *
         standard_error;
}

}  // namespace kvlab
