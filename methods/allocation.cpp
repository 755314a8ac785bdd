#include "methods/allocation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/base/check.h"
#include "methods/attention_mass/top_k.h"

namespace kvlab {
namespace {

// The straight line of PyramidKV without rounding: first and last layer's share.
struct Line {
  double first = 0;
  double last = 0;
};

Line pyramid_line(double mean, double limit, double beta) {
  Line line;
  line.last = mean / beta;
  line.first = 2 * mean - line.last;
  if (line.first >= limit) {
    line.first = limit;
    line.last = 2 * mean - limit;
  }
  return line;
}

double point_on(const Line& line, int64_t layer, int64_t num_layers) {
  if (num_layers == 1) {
    return (line.first + line.last) / 2;
  }
  return line.first - static_cast<double>(layer) * (line.first - line.last) /
                          static_cast<double>(num_layers - 1);
}

std::vector<int64_t> exact_pyramid(const LayerBudgetInput& input, double beta) {
  const int64_t kept_anyway = input.sinks + input.window;
  const int64_t mean = input.budget - kept_anyway;
  const int64_t limit = input.prompt_len - kept_anyway;
  const Line line = pyramid_line(static_cast<double>(mean), static_cast<double>(limit), beta);
  std::vector<double> shares(input.num_layers);
  for (int64_t layer = 0; layer < input.num_layers; ++layer) {
    shares[layer] =
        std::clamp(point_on(line, layer, input.num_layers), 0.0, static_cast<double>(limit));
  }
  std::vector<int64_t> budgets = largest_remainder(shares, mean * input.num_layers);
  for (int64_t& budget : budgets) {
    budget += kept_anyway;
  }
  return budgets;
}

// Integer arithmetic of KVCache-Factory's get_budget: floor divisions, no remainder handed out.
std::vector<int64_t> kvcache_factory_pyramid(const LayerBudgetInput& input, double beta) {
  const int64_t kept_anyway = input.sinks + input.window;
  const int64_t mean = input.budget - kept_anyway;
  const int64_t limit = input.prompt_len - kept_anyway;
  std::vector<int64_t> budgets(input.num_layers, input.budget);
  if (input.prompt_len < 2 * mean || input.num_layers == 1) {
    return budgets;
  }
  auto last = static_cast<int64_t>(std::floor(static_cast<double>(mean) / beta));
  int64_t first = 2 * mean - last;
  if (first >= limit) {
    first = limit;
    last = 2 * mean - first;
  }
  const auto step = static_cast<int64_t>(
      std::floor(static_cast<double>(first - last) / static_cast<double>(input.num_layers - 1)));
  for (int64_t layer = 0; layer < input.num_layers; ++layer) {
    budgets[layer] = std::clamp(first - layer * step, int64_t{0}, limit) + kept_anyway;
  }
  return budgets;
}

// kvpress lays the line over the whole budget and keeps the window inside what it gives.
std::vector<int64_t> kvpress_pyramid(const LayerBudgetInput& input, double beta) {
  const auto prompt_len = static_cast<double>(input.prompt_len);
  const auto window = static_cast<double>(input.window);
  const Line line = pyramid_line(static_cast<double>(input.budget), prompt_len - window, beta);
  std::vector<int64_t> budgets(input.num_layers, input.budget);
  const bool ordered = prompt_len >= line.first && line.first >= line.last && line.last >= window;
  if (!ordered || input.num_layers == 1) {
    return budgets;
  }
  const double step = (line.first - line.last) / static_cast<double>(input.num_layers - 1);
  for (int64_t layer = 0; layer < input.num_layers; ++layer) {
    // Python's round(): halves to even, as nearbyint does by default.
    const auto rounded =
        static_cast<int64_t>(std::nearbyint(line.first - static_cast<double>(layer) * step));
    budgets[layer] = std::clamp(rounded, input.sinks + input.window, input.prompt_len);
  }
  return budgets;
}

// Each head's scores times the share of its sum that its best `base` entries hold.
std::vector<float> normalized_scores(const HeadBudgetInput& input, int64_t base) {
  std::vector<float> scaled(input.scores.begin(), input.scores.end());
  for (int64_t head = 0; head < input.num_heads; ++head) {
    const auto row =
        std::span<float>(scaled).subspan(head * input.num_candidates, input.num_candidates);
    double best = 0;
    for (const int32_t position : top_positions(row, base)) {
      best += row[position];
    }
    const double sum = std::accumulate(row.begin(), row.end(), 0.0);
    const auto share = static_cast<float>(sum > 0 ? best / sum : 0.0);
    for (float& score : row) {
      score *= share;
    }
  }
  return scaled;
}

// How many of the best `count` entries over all heads fall on each head.
std::vector<int64_t> counts_of_best(std::span<const float> scores, int64_t num_heads,
                                    int64_t num_candidates, int64_t count) {
  std::vector<int64_t> counts(num_heads, 0);
  for (const int32_t flat : top_positions(scores, count)) {
    ++counts[flat / num_candidates];
  }
  return counts;
}

std::vector<int64_t> kvpress_counts(const HeadBudgetInput& input, double floor, int64_t base) {
  auto safe = static_cast<int64_t>(static_cast<double>(input.budget) * floor);
  if (floor > 0) {
    safe = std::max<int64_t>(safe, 1);
  }
  safe = std::clamp<int64_t>(safe - input.protected_entries, 0, base);
  // The safe entries of every head leave the contest; the rest is shared by score.
  std::vector<float> rest(input.scores.begin(), input.scores.end());
  constexpr float kTaken = -std::numeric_limits<float>::infinity();
  for (int64_t head = 0; head < input.num_heads; ++head) {
    const auto row =
        std::span<float>(rest).subspan(head * input.num_candidates, input.num_candidates);
    for (const int32_t position : top_positions(row, safe)) {
      row[position] = kTaken;
    }
  }
  std::vector<int64_t> counts =
      counts_of_best(rest, input.num_heads, input.num_candidates, input.num_heads * (base - safe));
  for (int64_t& count : counts) {
    count += safe;
  }
  return counts;
}

}  // namespace

std::vector<int64_t> largest_remainder(std::span<const double> shares, int64_t total) {
  std::vector<int64_t> counts(shares.size());
  std::vector<float> remainders(shares.size());
  int64_t sum = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    // To a millionth, so that what is equal on paper is equal here.
    const double share = std::round(shares[i] * 1e6) * 1e-6;
    const double whole = std::floor(share + 1e-9);
    counts[i] = static_cast<int64_t>(whole);
    remainders[i] = static_cast<float>(std::round((share - whole) * 1e6));
    sum += counts[i];
  }
  const int64_t left = total - sum;
  KVLAB_CHECK(left >= 0 && left <= static_cast<int64_t>(shares.size()));
  for (const int32_t i : top_positions(remainders, left)) {
    ++counts[i];
  }
  return counts;
}

std::vector<int64_t> pyramid_budgets(const LayerBudgetInput& input, const PyramidOptions& options) {
  KVLAB_CHECK(input.sinks + input.window <= input.budget && input.budget < input.prompt_len);
  switch (options.rounding) {
    case PyramidRounding::kExact:
      return exact_pyramid(input, options.beta);
    case PyramidRounding::kKvcacheFactory:
      return kvcache_factory_pyramid(input, options.beta);
    case PyramidRounding::kKvpress:
      return kvpress_pyramid(input, options.beta);
  }
  return {};
}

std::vector<int64_t> adaptive_counts(const HeadBudgetInput& input, const AdaptiveOptions& options) {
  const int64_t base = input.budget - input.protected_entries;
  KVLAB_CHECK(base >= 0 && base <= input.num_candidates);
  std::vector<float> scaled;
  HeadBudgetInput weighed = input;
  if (options.normalize) {
    scaled = normalized_scores(input, base);
    weighed.scores = scaled;
  }
  if (options.rounding == AdaptiveRounding::kKvpress) {
    return kvpress_counts(weighed, options.floor, base);
  }
  const std::vector<int64_t> best =
      counts_of_best(weighed.scores, input.num_heads, input.num_candidates, input.num_heads * base);
  std::vector<double> shares(input.num_heads);
  for (int64_t head = 0; head < input.num_heads; ++head) {
    shares[head] = static_cast<double>(best[head]) * (1 - options.floor) +
                   options.floor * static_cast<double>(base);
  }
  if (options.rounding == AdaptiveRounding::kExact) {
    return largest_remainder(shares, input.num_heads * base);
  }
  std::vector<int64_t> counts(input.num_heads);
  for (int64_t head = 0; head < input.num_heads; ++head) {
    counts[head] =
        std::min(static_cast<int64_t>(std::nearbyint(shares[head])), input.num_candidates);
  }
  return counts;
}

}  // namespace kvlab
