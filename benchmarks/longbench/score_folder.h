// Scores for a folder of LongBench prediction files, as LongBench's eval.py computes them.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/longbench/metrics/metric.h"
#include "harness/base/json.h"

namespace kvlab {

// LongBench-E reports by the number of words in the prompt's context.
inline constexpr std::array<std::string_view, 3> kLongBenchBuckets = {"0-4k", "4-8k", "8k+"};
size_t longbench_bucket(int64_t word_length);

struct LongBenchFileScore {
  std::string name;  // the file's name up to its first dot
  LongBenchMetric metric = LongBenchMetric::kAnswerF1;
  std::vector<double> scores;  // 0..1, in the order of the lines

  bool by_length = false;
  double percent = 0;  // 100 times the mean, two decimals; where not by length
  std::array<std::optional<double>, 3> bucket_percent;  // absent where a bucket has no lines
  std::array<size_t, 3> bucket_count{};
};

struct ScoreFolderOptions {
  LongBenchScoring scoring;  // `first_line` is the rule for tasks that have one
  bool by_length = false;    // every file is LongBench-E's; files named *_e.jsonl always are
};

// Every *.jsonl in `folder`, sorted by name; a line holds pred, answers, all_classes and, for
// LongBench-E, length. Errors name the file and line.
absl::StatusOr<std::vector<LongBenchFileScore>> score_longbench_folder(
    const std::filesystem::path& folder, const ScoreFolderOptions& options);

// LongBench's result.json: the score by name, or the three buckets' scores (null: no lines).
Json longbench_result_json(const std::vector<LongBenchFileScore>& files);

}  // namespace kvlab
