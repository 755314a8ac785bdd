#include "reports/statistics.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "harness/base/check.h"

namespace kvlab {
namespace {

double t_quantile(double degrees, double probability) {
  return boost::math::quantile(boost::math::students_t(degrees), probability);
}

}  // namespace

Estimate t_interval(const Moments& moments, double confidence) {
  Estimate estimate;
  estimate.mean = moments.mean();
  estimate.count = moments.count();
  if (moments.count() >= 2) {
    const auto n = static_cast<double>(moments.count());
    estimate.standard_error = std::sqrt(moments.variance() / n);
    estimate.degrees = n - 1;
    const double half = t_quantile(n - 1, 0.5 + confidence / 2) * estimate.standard_error;
    estimate.low = estimate.mean - half;
    estimate.high = estimate.mean + half;
  }
  return estimate;
}

Estimate mean_of_means(std::span<const Moments> groups, double confidence) {
  KVLAB_CHECK(!groups.empty());
  const auto k = static_cast<double>(groups.size());
  Estimate estimate;
  double variance = 0;
  double welch = 0;  // sum of v_i^2 / (n_i - 1), v_i the variance of a group's mean
  bool every_group_varies = true;
  for (const Moments& group : groups) {
    const auto n = static_cast<double>(group.count());
    estimate.mean += group.mean() / k;
    estimate.count += group.count();
    if (group.count() < 2) {
      every_group_varies = false;
      continue;
    }
    const double v = group.variance() / n / (k * k);
    variance += v;
    welch += v * v / (n - 1);
  }
  if (every_group_varies) {
    estimate.standard_error = std::sqrt(variance);
    estimate.degrees = variance > 0 ? variance * variance / welch : 0;
    const double half =
        variance > 0 ? t_quantile(estimate.degrees, 0.5 + confidence / 2) * estimate.standard_error
                     : 0;
    estimate.low = estimate.mean - half;
    estimate.high = estimate.mean + half;
  }
  return estimate;
}

double quantile(std::vector<double>& values, double q) {
  KVLAB_CHECK(!values.empty());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const double share = position - static_cast<double>(below);
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), at, values.end());
  if (share == 0) {
    return *at;
  }
  const double above = *std::min_element(at + 1, values.end());
  return *at + share * (above - *at);
}

Estimate median_interval(std::vector<double> values, double confidence) {
  Estimate estimate;
  estimate.mean = quantile(values, 0.5);
  estimate.count = static_cast<int64_t>(values.size());
  // The largest k with P(at most k - 1 of n values below the median) <= (1 - confidence) / 2.
  const boost::math::binomial below(static_cast<double>(values.size()), 0.5);
  const double tail = (1 - confidence) / 2;
  size_t k = 0;
  while (k < values.size() / 2 && boost::math::cdf(below, static_cast<double>(k)) <= tail) {
    ++k;
  }
  if (k > 0) {
    std::sort(values.begin(), values.end());
    estimate.low = values[k - 1];
    estimate.high = values[values.size() - k];
  }
  return estimate;
}

std::pair<double, double> percentile_interval(std::vector<double> resampled, double confidence) {
  const double tail = (1 - confidence) / 2;
  const double low = quantile(resampled, tail);
  return {low, quantile(resampled, 1 - tail)};
}

}  // namespace kvlab
