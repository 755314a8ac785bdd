// The scores of the literature. Equations and sources: docs/methods.md.
#pragma once

#include <cstdint>
#include <memory>

#include "methods/attention_mass/attention_mass.h"
#include "methods/query_source.h"
#include "methods/scorer.h"

namespace kvlab {

// Attention that the source's rows pay to each entry, reduced over the rows, per query head.
std::unique_ptr<Scorer> make_attention_scorer(std::unique_ptr<QuerySource> source,
                                              RowReduction row_reduction);

// H2O (arXiv 2306.14048): attention received from every prompt query, per query head; divided by
// the number of queries that see the entry where `average` is set (kvpress's ObservedAttention).
std::unique_ptr<Scorer> make_attention_sums_scorer(bool average);

// Key norm (arXiv 2406.11430): minus the length of the key. Per KV head.
std::unique_ptr<Scorer> make_key_norm_scorer();

// KeyDiff (arXiv 2504.15364): minus the cosine between the key and the mean direction of all keys.
std::unique_ptr<Scorer> make_key_diff_scorer();

struct ExpectedAttentionOptions {
  int64_t future_positions = 512;  // positions after the prompt that queries are averaged over
  int64_t skipped_tokens = 4;      // first prompt tokens left out of the statistics and softmax
  bool use_covariance = true;
  bool use_value_norm = true;
  double epsilon = 0;  // added to the score before it is multiplied by the value's norm
};

// Expected attention (arXiv 2510.00636): E[exp(q.k)] for queries with the prompt's mean and
// covariance, rotated to the positions that follow. Per query head before the value norm, per KV
// head after it.
std::unique_ptr<Scorer> make_expected_attention_scorer(const ExpectedAttentionOptions& options);

// StreamingLLM (arXiv 2309.17453): the later the better.
std::unique_ptr<Scorer> make_recency_scorer();

// Uniform noise that depends on the seed, the prompt's tokens, the layer and the KV head only.
std::unique_ptr<Scorer> make_random_scorer(uint64_t seed);

}  // namespace kvlab
