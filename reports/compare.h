// Two methods on the same samples.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "reports/fields.h"
#include "reports/table.h"
#include "results/score_data.h"

namespace kvlab {

struct CompareOptions {
  std::string baseline;   // a method's label, or its name where that is clear
  std::string candidate;  // the same
  int64_t resamples = 10'000;
  uint64_t seed = 1;
  int64_t examples = 3;  // samples that differ most, for each table
};

// A sample that the two methods answered differently.
struct DifferingSample {
  int64_t baseline_row, candidate_row;  // results.id
  std::string task, sample, budget;
  double baseline_score, candidate_score;
};

struct Comparison {
  Table table;  // a row for each task and one over all
  std::vector<DifferingSample> samples;
};

// One comparison for every model, benchmark, protocol, length, question handling and budget that
// both methods share; the full cache is compared at every budget of the other. Only samples that
// both have as ok are used. Errors: unknown or ambiguous methods, nothing in common.
absl::StatusOr<std::vector<Comparison>> compare_methods(const ScoreData& data,
                                                        const CompareOptions& options);

// "window: 32, 16" for every parameter in which the two methods differ, in words for people.
std::vector<std::string> differing_settings(const ScoreData& data, const CompareOptions& options);

}  // namespace kvlab
