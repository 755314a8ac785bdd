// The samples that two methods both have, sorted into comparisons.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "reports/fields.h"
#include "results/score_data.h"

namespace kvlab {

struct SamplePair {
  const ScoreData::Cell* baseline;
  const ScoreData::Cell* candidate;
  double difference() const { return candidate->score - baseline->score; }
};

struct SamplePairs {
  std::map<int32_t, std::vector<SamplePair>> tasks;  // by task code; a task may have no pair
  int64_t unmatched = 0;                             // samples that one of the two lacks as ok
};

// By model, benchmark, protocol, length, question handling and budget, and by data set where one
// task and length has several; the keys' task and method are -1. The full cache stands beside every
// budget of the other method. Only comparisons with at least one pair, a task's pairs in
// the order of its samples. The pairs point into `data`.
std::map<FieldCodes, SamplePairs> pair_samples(const ScoreData& data, const FieldIndex& index,
                                               int32_t baseline, int32_t candidate);

}  // namespace kvlab
