// Comparing two methods on the same samples: resampling, permutation test, correction over tasks.
// Everything is checked against SciPy (tests/golden/make_statistics.py).
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

namespace kvlab {

// Seeded, and the same on every platform (unlike std::uniform_int_distribution).
class ResamplingRandom final {
 public:
  explicit ResamplingRandom(uint64_t seed) : engine_(seed) {}
  // Uniform in [0, bound), bound > 0 (the bias of multiply-shift is below bound / 2^32).
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>(((engine_() >> 32) * bound) >> 32);
  }
  uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

// Means of resamples: `indices` holds one row of values.size() indices for each resample.
std::vector<double> resampled_means(std::span<const double> values,
                                    std::span<const uint32_t> indices);
// The same with indices drawn from `random`.
std::vector<double> bootstrap_means(std::span<const double> values, int64_t resamples,
                                    ResamplingRandom& random);

// Sign-flip permutation test of mean difference zero over one or more groups of paired differences,
// two-sided; the statistic is the mean of group means. Exact (every sign pattern) where at most
// kMaxExactPairs differences are not zero; otherwise (hits + 1) / (permutations + 1) over seeded
// random patterns. 1 where every difference is zero.
constexpr int kMaxExactPairs = 16;
double permutation_p(std::span<const std::vector<double>> groups, int64_t permutations,
                     ResamplingRandom& random);

// Holm's step-down adjustment, in the order given.
std::vector<double> holm(std::span<const double> p_values);

// The smallest true mean difference that a paired t test would find with probability `power` at
// level `alpha`, two-sided, given the standard error of the mean difference and its degrees of
// freedom: (t_{1-alpha/2} + t_{power}) * standard_error. None without degrees of freedom.
std::optional<double> minimal_detectable_difference(double standard_error, double degrees,
                                                    double alpha = 0.05, double power = 0.8);

}  // namespace kvlab
