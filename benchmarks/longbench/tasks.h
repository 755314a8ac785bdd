// The 21 tasks of LongBench v1: prompt texts, lengths and metrics, as data.
// Sources: THUDM/LongBench config/dataset2prompt.json, config/dataset2maxlen.json, pred.py and
// eval.py; where the question starts and which cue ends a prompt follow NVIDIA/kvpress's split of
// the same patterns.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "benchmarks/longbench/metrics/metric.h"

namespace kvlab {

struct LongBenchTask {
  std::string_view name;
  std::string_view language;  // "en", "zh" or "code"

  // The prompt pattern is context_part + question_part + cue, with {context} and {input} replaced.
  std::string_view context_part;
  std::string_view question_part;
  std::string_view cue;        // what the reply goes on from
  std::string_view input_cue;  // a cue that ends the records' `input` instead

  LongBenchMetric metric;
  int64_t max_new_tokens;
  bool few_shot_or_code;  // goes in without a chat template
  bool first_line_only;   // the scorer reads the reply's first line only
  bool in_longbench_e;
};

// In the order of LongBench's own lists.
std::span<const LongBenchTask> longbench_tasks();

// An unknown name is an error that lists the known ones.
absl::StatusOr<const LongBenchTask*> find_longbench_task(std::string_view name);

// A record's fields filled into the pattern; user_text is the three parts one after the other.
struct LongBenchPromptParts {
  std::string context;
  std::string question;
  std::string cue;
};
LongBenchPromptParts fill_longbench_prompt(const LongBenchTask& task, std::string_view context,
                                           std::string_view input);

}  // namespace kvlab
