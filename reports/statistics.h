// Means with intervals. Everything is checked against SciPy (tests/golden/make_statistics.py).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace kvlab {

constexpr double kConfidence = 0.95;

// Count, mean and sum of squared deviations, added one value at a time (Welford).
class Moments final {
 public:
  void add(double value) {
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
  int64_t count() const { return count_; }
  double mean() const { return mean_; }
  // Unbiased; 0 for fewer than two values.
  double variance() const { return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1); }

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

struct Estimate {
  double mean = 0;
  std::optional<double> low, high;  // absent where the data cannot give an interval
  int64_t count = 0;                // values behind the mean
  double standard_error = 0;        // of the mean; 0 without an interval
  double degrees = 0;               // of freedom; 0 without an interval or without variance
};

// Student's t interval of a mean; none for fewer than two values.
Estimate t_interval(const Moments& moments, double confidence = kConfidence);

// The unweighted mean of group means (tasks are fixed, samples within them random), with the
// Welch-Satterthwaite degrees of freedom. No interval where a group has fewer than two values.
Estimate mean_of_means(std::span<const Moments> groups, double confidence = kConfidence);

// The median with the distribution-free interval between two order statistics (from the binomial
// distribution, conservative); none where no two of them reach the confidence. Not empty.
Estimate median_interval(std::vector<double> values, double confidence = kConfidence);

// The quantile with linear interpolation, as NumPy's default. `values` is reordered, not empty.
double quantile(std::vector<double>& values, double q);

// Percentile interval over resampled statistics.
std::pair<double, double> percentile_interval(std::vector<double> resampled,
                                              double confidence = kConfidence);

}  // namespace kvlab
