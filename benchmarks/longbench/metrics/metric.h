// One score for one LongBench reply, by the task's metric, as LongBench's eval.py computes it.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/longbench/metrics/code_similarity.h"

namespace kvlab {

enum class LongBenchMetric {
  kAnswerF1,
  kAnswerF1Zh,
  kRougeL,
  kRougeLZh,
  kClassification,
  kCount,
  kRetrieval,
  kRetrievalZh,
  kCodeSimilarity,
};

// As tables show it: "F1", "ROUGE-L", ...
std::string_view metric_name(LongBenchMetric metric);

// Which part of a reply counts where only its first line does.
enum class FirstLine {
  kNone,             // the whole reply
  kAfterNewlines,    // the first line after leading newlines (LongBench)
  kAfterWhiteSpace,  // the first line after leading white space of any kind (kvpress)
};

struct LongBenchScoring {
  FirstLine first_line = FirstLine::kNone;
  CodeRatio code_ratio = CodeRatio::kDifflib;
  // Python's recursion limit, which makes ROUGE-L of long sentences 0; 0: no limit (rouge_l.h).
  int64_t rouge_recursion_limit = 1000;
};

// 0..1, the best over the references. `classes` matter to classification only. Invalid UTF-8 counts
// as U+FFFD. An error: a retrieval reference without its number, or jieba's data is missing.
absl::StatusOr<double> longbench_score(LongBenchMetric metric, const LongBenchScoring& scoring,
                                       std::string_view reply,
                                       const std::vector<std::string>& references,
                                       const std::vector<std::string>& classes);

}  // namespace kvlab
