#include "benchmarks/longbench/longbench_benchmark.h"

#include <algorithm>
#include <set>
#include <utility>

#include "benchmarks/longbench/protocol.h"
#include "benchmarks/longbench/tasks.h"
#include "datasets/longbench/longbench_records.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr std::string_view kOrigin = "longbench";
constexpr std::string_view kSuffixE = "_e";

struct Request {
  std::string folder;
  std::vector<const LongBenchTask*> tasks;
  int64_t samples = 0;  // 0: all
  bool e = false;
  LongBenchProtocol protocol;
};

absl::Status check_keys(const Json& params) {
  if (!params.is_object()) {
    return invalid_argument("{}: the parameters must be an object", kOrigin);
  }
  std::vector<std::string> known = longbench_protocol_keys();
  known.insert(known.end(), {"name", "folder", "tasks", "samples", "e"});
  for (const auto& [key, value] : params.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return invalid_argument("{}: unknown key \"{}\"; valid: {}", kOrigin, key,
                              fmt::join(known, ", "));
    }
  }
  return absl::OkStatus();
}

bool in_group(const LongBenchTask& task, std::string_view group) {
  return group == "all" || (group == "english" && task.language != "zh") ||
         (group == "chinese" && task.language == "zh");
}

absl::StatusOr<std::vector<const LongBenchTask*>> select_tasks(const Json& params, bool e) {
  KVLAB_ASSIGN_OR_RETURN(const Json given, json_get_or<Json>(params, "tasks", "all", kOrigin));
  std::set<const LongBenchTask*> chosen;
  for (const Json& name : given.is_array() ? given : Json::array({given})) {
    if (!name.is_string()) {
      return invalid_argument("{}: \"tasks\" must hold names", kOrigin);
    }
    const std::string text = name.get<std::string>();
    if (text == "all" || text == "english" || text == "chinese") {
      for (const LongBenchTask& task : longbench_tasks()) {
        if (in_group(task, text) && (!e || task.in_longbench_e)) {
          chosen.insert(&task);
        }
      }
      continue;
    }
    const absl::StatusOr<const LongBenchTask*> task = find_longbench_task(text);
    if (!task.ok()) {
      return invalid_argument("{}, and the groups all, english, chinese",
                              message_of(task.status()));
    }
    if (e && !(*task)->in_longbench_e) {
      return invalid_argument("{}: LongBench-E has no {}", kOrigin, text);
    }
    chosen.insert(*task);
  }
  std::vector<const LongBenchTask*> tasks(chosen.begin(), chosen.end());
  std::sort(tasks.begin(), tasks.end());  // LongBench's own order
  if (tasks.empty()) {
    return invalid_argument("{}: \"tasks\" names none", kOrigin);
  }
  return tasks;
}

absl::StatusOr<Request> parse_request(const Json& params) {
  KVLAB_RETURN_IF_ERROR(check_keys(params));
  Request request;
  KVLAB_ASSIGN_OR_RETURN(request.folder, json_get<std::string>(params, "folder", kOrigin));
  KVLAB_ASSIGN_OR_RETURN(request.e, json_get_or<bool>(params, "e", false, kOrigin));
  KVLAB_ASSIGN_OR_RETURN(request.samples, json_get_or<int64_t>(params, "samples", 0, kOrigin));
  if (request.samples < 0) {
    return invalid_argument("{}: \"samples\" is {}; it must be 0 (all) or more", kOrigin,
                            request.samples);
  }
  KVLAB_ASSIGN_OR_RETURN(request.tasks, select_tasks(params, request.e));
  KVLAB_ASSIGN_OR_RETURN(request.protocol, resolve_longbench_protocol(params));
  return request;
}

bool uses_template(const LongBenchTask& task, const LongBenchProtocol& protocol,
                   const Tokenizer& tokenizer) {
  if (protocol.template_models == TemplateModels::kLlama3Only &&
      !tokenizer.token_id("<|start_header_id|>")) {
    return false;
  }
  switch (protocol.chat_template) {
    case TemplateUse::kNone:
      return false;
    case TemplateUse::kExceptFewShotAndCode:
      return !task.few_shot_or_code;
    case TemplateUse::kAll:
      return true;
  }
  return true;
}

// The prompt, where its question starts, and the cue where the protocol moves it.
void set_texts(const LongBenchTask& task, const LongBenchRecord& record, bool cue_as_answer_prefix,
               Sample& sample) {
  std::string_view input = record.input;
  std::string_view input_cue;
  if (cue_as_answer_prefix && !task.input_cue.empty() && input.ends_with(task.input_cue)) {
    input_cue = task.input_cue;
    input.remove_suffix(task.input_cue.size());
  }
  LongBenchPromptParts parts = fill_longbench_prompt(task, record.context, input);
  sample.question_begin = parts.context.size();
  sample.prompt = std::move(parts.context) + parts.question;
  if (cue_as_answer_prefix) {
    sample.answer_prefix = parts.cue.empty() ? std::string(input_cue) : parts.cue;
  } else {
    sample.prompt += parts.cue;
  }
}

Sample make_sample(const Request& request, const LongBenchTask& task, const LongBenchRecord& record,
                   const Tokenizer& tokenizer) {
  const LongBenchProtocol& protocol = request.protocol;
  const bool samsum = task.name == "samsum";
  Sample sample;
  sample.benchmark = kOrigin;
  sample.task = fmt::format("{}{}", task.name, request.e ? kSuffixE : "");
  sample.key = fmt::format("longbench/{}/{}", sample.task, record.id);
  set_texts(task, record, protocol.cue_as_answer_prefix, sample);
  sample.chat_template = uses_template(task, protocol, tokenizer);
  sample.references = record.answers;
  sample.extra = {{"language", record.language},
                  {"word_length", record.word_length},
                  {"scoring", longbench_scoring_json(task, protocol.scoring)}};
  if (!record.classes.empty()) {
    sample.extra["classes"] = record.classes;
  }
  sample.max_new_tokens = task.max_new_tokens + protocol.extra_new_tokens;
  sample.min_new_tokens = samsum ? protocol.samsum_min_new_tokens : protocol.min_new_tokens;
  if (samsum && protocol.samsum_stops_at_newline) {
    sample.stop_texts = {"\n"};
  }
  sample.truncation = protocol.truncation;
  sample.max_prompt_tokens = protocol.max_prompt_tokens;
  sample.bos_rule = protocol.bos_rule;
  sample.tokenise_in_parts = protocol.tokenise_in_parts;
  sample.clean_up_spaces = protocol.clean_up_spaces;
  return sample;
}

}  // namespace

std::string_view LongBenchBenchmark::summary() const {
  return "21 tasks on long English and Chinese texts and code, and LongBench-E";
}

std::vector<std::string> LongBenchBenchmark::tasks() const {
  std::vector<std::string> names;
  for (const LongBenchTask& task : longbench_tasks()) {
    names.emplace_back(task.name);
  }
  return names;
}

absl::StatusOr<Json> LongBenchBenchmark::resolve_protocol(const Json& params) const {
  KVLAB_RETURN_IF_ERROR(check_keys(params));
  KVLAB_ASSIGN_OR_RETURN(const LongBenchProtocol protocol, resolve_longbench_protocol(params));
  return longbench_protocol_json(protocol);
}

absl::StatusOr<std::vector<Sample>> LongBenchBenchmark::load_samples(
    const Json& params, const Tokenizer& tokenizer, const PromptFormat& /*format*/) const {
  KVLAB_ASSIGN_OR_RETURN(const Request request, parse_request(params));
  std::vector<Sample> samples;
  for (const LongBenchTask* const task : request.tasks) {
    const std::string file = fmt::format("{}{}", task->name, request.e ? kSuffixE : "");
    KVLAB_ASSIGN_OR_RETURN(const LongBenchRecords records,
                           read_longbench_records(request.folder, file));
    const std::string dataset =
        fmt::format("longbench/{}@sha256:{}", file, records.content_hash.substr(0, 16));
    const size_t count = request.samples == 0 ? records.records.size()
                                              : std::min(records.records.size(),
                                                         static_cast<size_t>(request.samples));
    for (size_t i = 0; i < count; ++i) {
      Sample sample = make_sample(request, *task, records.records[i], tokenizer);
      if (task->metric == LongBenchMetric::kClassification && records.records[i].classes.empty()) {
        return invalid_argument("{}: the record has no all_classes to score with", sample.key);
      }
      sample.dataset = dataset;
      sample.index = static_cast<int64_t>(i);
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

absl::StatusOr<Score> LongBenchBenchmark::score(const Sample& sample,
                                                std::string_view reply) const {
  std::string_view name = sample.task;
  if (name.ends_with(kSuffixE)) {
    name.remove_suffix(kSuffixE.size());
  }
  KVLAB_ASSIGN_OR_RETURN(const LongBenchTask* const task, find_longbench_task(name));
  KVLAB_ASSIGN_OR_RETURN(const Json scoring_json,
                         json_get<Json>(sample.extra, "scoring", sample.key));
  KVLAB_ASSIGN_OR_RETURN(const LongBenchScoring scoring,
                         parse_longbench_scoring(scoring_json, sample.key));
  std::vector<std::string> classes;
  for (const Json& value : sample.extra.value("classes", Json::array())) {
    classes.push_back(value.is_string() ? value.get<std::string>() : std::string());
  }
  const absl::StatusOr<double> score =
      longbench_score(task->metric, scoring, reply, sample.references, classes);
  if (!score.ok()) {
    return with_context(score.status(), sample.key);
  }
  return Score{100 * *score, std::string(metric_name(task->metric))};
}

}  // namespace kvlab
