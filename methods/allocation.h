// How a budget is shared out: over the layers (pyramid) and over the KV heads of a layer
// (adaptive). Plain numbers; no torch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kvlab {

// Whole numbers close to `shares` (not negative) that add up to `total`: each share is rounded
// down, and what is left goes to the largest remainders (to a millionth), the earlier one first.
// `total` must be at least the sum of the floors and at most shares.size() more.
std::vector<int64_t> largest_remainder(std::span<const double> shares, int64_t total);

// PyramidKV (arXiv 2406.02069): budgets fall in a straight line from the first layer to the last.
enum class PyramidRounding {
  kExact,           // the line in real numbers, rounded by largest remainder: the total is exact
  kKvcacheFactory,  // integer divisions of Zefan-Cai/KVCache-Factory; the total may differ
  kKvpress,         // NVIDIA/kvpress: the window on top of the line, rounded layer by layer
};

struct PyramidOptions {
  double beta = 20;  // the last layer gets 1/beta of the mean, before limits
  PyramidRounding rounding = PyramidRounding::kExact;
};

struct LayerBudgetInput {
  int64_t num_layers = 0;
  int64_t prompt_len = 0;
  int64_t budget = 0;  // mean entries per layer and KV head; protected <= budget < prompt_len
  int64_t sinks = 0;
  int64_t window = 0;
};

// Entries per KV head that each layer keeps, sinks and window inside; between sinks + window and
// prompt_len.
std::vector<int64_t> pyramid_budgets(const LayerBudgetInput& input, const PyramidOptions& options);

// AdaKV (arXiv 2407.11550): the heads of a layer share its budget by where the scores are.
enum class AdaptiveRounding {
  kExact,   // floor and share mixed in real numbers, rounded by largest remainder
  kAdakv,   // FFY0/AdaKV: each head rounded by itself; the sum may differ
  kKvpress  // NVIDIA/kvpress: each head's best floor * budget are safe, the rest by score
};

struct AdaptiveOptions {
  double floor = 0.2;  // share of the uniform budget that every head is sure of
  AdaptiveRounding rounding = AdaptiveRounding::kExact;
  bool normalize = false;  // weigh a head by the share of its scores that its uniform budget holds
};

struct HeadBudgetInput {
  std::span<const float> scores;  // [num_heads, num_candidates]: what is not protected
  int64_t num_heads = 0;
  int64_t num_candidates = 0;
  int64_t budget = 0;             // entries per head on average, protected ones inside
  int64_t protected_entries = 0;  // per head: sinks + window
};

// Candidates that each head keeps (protected entries not counted), at most num_candidates.
std::vector<int64_t> adaptive_counts(const HeadBudgetInput& input, const AdaptiveOptions& options);

}  // namespace kvlab
