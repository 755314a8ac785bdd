// The settings that move LongBench scores, as named protocols.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/longbench/metrics/metric.h"
#include "benchmarks/longbench/tasks.h"
#include "harness/base/json.h"
#include "harness/text/prompt_builder.h"

namespace kvlab {

// Which tasks go into the chat template.
enum class TemplateUse {
  kNone,
  kExceptFewShotAndCode,  // all but trec, triviaqa, samsum, lsht, lcc and repobench-p
  kAll,
};

// Whose models go into it at all.
enum class TemplateModels { kAll, kLlama3Only };

struct LongBenchProtocol {
  std::string name;
  Truncation truncation = Truncation::kMiddle;
  int64_t max_prompt_tokens = 0;  // 0: no limit
  bool clean_up_spaces = false;
  TemplateUse chat_template = TemplateUse::kExceptFewShotAndCode;
  TemplateModels template_models = TemplateModels::kAll;
  BosRule bos_rule = BosRule::kOne;
  bool tokenise_in_parts = false;
  bool cue_as_answer_prefix = false;  // "Answer:" and the like after the assistant header
  int64_t extra_new_tokens = 0;       // on top of the task's maximum
  int64_t min_new_tokens = 0;         // of every task but samsum
  int64_t samsum_min_new_tokens = 1;
  bool samsum_stops_at_newline = true;
  LongBenchScoring scoring;  // first_line: the rule of trec, triviaqa, samsum and lsht
};

// "longbench-official", "kvpress", "kvcache-factory".
std::vector<std::string> longbench_protocol_names();

// The protocol that `params` names ("protocol", by default longbench-official), with those of its
// fields replaced that `params` gives under their names in longbench_protocol_json(). Errors name
// the key and the valid choices. Other keys of `params` are not looked at.
absl::StatusOr<LongBenchProtocol> resolve_longbench_protocol(const Json& params);

// Every field, by name: equal Json means comparable scores.
Json longbench_protocol_json(const LongBenchProtocol& protocol);

// The names of the fields that `params` may give.
std::vector<std::string> longbench_protocol_keys();

// The parts of `scoring` that a task's replies need, kept with each sample, and back.
Json longbench_scoring_json(const LongBenchTask& task, const LongBenchScoring& scoring);
absl::StatusOr<LongBenchScoring> parse_longbench_scoring(const Json& json, std::string_view origin);

}  // namespace kvlab
