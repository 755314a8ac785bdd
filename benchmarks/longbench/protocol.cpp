#include "benchmarks/longbench/protocol.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "harness/base/check.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

// ---- The named protocols. Sources: docs/longbench.md.

const std::array<LongBenchProtocol, 3>& protocols() {
  static const std::array<LongBenchProtocol, 3> kProtocols = {
      LongBenchProtocol{.name = "longbench-official",
                        .truncation = Truncation::kMiddle,
                        .max_prompt_tokens = 31500,
                        .scoring = {.first_line = FirstLine::kAfterNewlines}},
      LongBenchProtocol{.name = "kvpress",
                        .truncation = Truncation::kTail,
                        .chat_template = TemplateUse::kAll,
                        .tokenise_in_parts = true,
                        .cue_as_answer_prefix = true,
                        .extra_new_tokens = 20,
                        .samsum_min_new_tokens = 0,
                        .samsum_stops_at_newline = false,
                        .scoring = {.first_line = FirstLine::kAfterWhiteSpace}},
      LongBenchProtocol{.name = "kvcache-factory",
                        .truncation = Truncation::kMiddle,
                        .max_prompt_tokens = 7500,
                        .template_models = TemplateModels::kLlama3Only,
                        .min_new_tokens = 1,
                        .scoring = {.first_line = FirstLine::kAfterNewlines}}};
  return kProtocols;
}

// ---- Choices by name.

template <typename Enum>
using Choice = std::pair<std::string_view, Enum>;

constexpr std::array<Choice<Truncation>, 3> kTruncations = {
    {{"none", Truncation::kNone}, {"middle", Truncation::kMiddle}, {"tail", Truncation::kTail}}};
constexpr std::array<Choice<TemplateUse>, 3> kTemplateUses = {
    {{"none", TemplateUse::kNone},
     {"except-few-shot-and-code", TemplateUse::kExceptFewShotAndCode},
     {"all", TemplateUse::kAll}}};
constexpr std::array<Choice<TemplateModels>, 2> kTemplateModels = {
    {{"all", TemplateModels::kAll}, {"llama-3-only", TemplateModels::kLlama3Only}}};
constexpr std::array<Choice<BosRule>, 2> kBosRules = {
    {{"one", BosRule::kOne}, {"official-double", BosRule::kOfficialDouble}}};
constexpr std::array<Choice<FirstLine>, 3> kFirstLines = {
    {{"none", FirstLine::kNone},
     {"after-newlines", FirstLine::kAfterNewlines},
     {"after-white-space", FirstLine::kAfterWhiteSpace}}};
constexpr std::array<Choice<CodeRatio>, 2> kCodeRatios = {
    {{"difflib", CodeRatio::kDifflib}, {"levenshtein", CodeRatio::kLevenshtein}}};

template <typename Enum, size_t N>
std::string name_of(const std::array<Choice<Enum>, N>& choices, Enum value) {
  const auto it = std::find_if(choices.begin(), choices.end(),
                               [&](const auto& choice) { return choice.second == value; });
  KVLAB_CHECK(it != choices.end());
  return std::string(it->first);
}

// ---- One visitor over all fields serves reading and writing.

class Writer {
 public:
  void operator()(const char* key, const int64_t& value) { out[key] = value; }
  void operator()(const char* key, const bool& value) { out[key] = value; }
  template <typename Enum, size_t N>
  void operator()(const char* key, const Enum& value, const std::array<Choice<Enum>, N>& choices) {
    out[key] = name_of(choices, value);
  }

  Json out = Json::object();
};

class Reader {
 public:
  Reader(const Json& params, std::string_view origin) : params_(params), origin_(origin) {}

  void operator()(const char* key, int64_t& value) {
    take(key, value);
    if (status.ok() && value < 0) {
      status = invalid_argument("{}: \"{}\" is {}; it must not be negative", origin_, key, value);
    }
  }
  void operator()(const char* key, bool& value) { take(key, value); }
  template <typename Enum, size_t N>
  void operator()(const char* key, Enum& value, const std::array<Choice<Enum>, N>& choices) {
    std::string name = name_of(choices, value);
    take(key, name);
    std::string known;
    for (const auto& [choice, meaning] : choices) {
      if (choice == name) {
        value = meaning;
        return;
      }
      known += fmt::format("{}{}", known.empty() ? "" : ", ", choice);
    }
    if (status.ok()) {
      status = invalid_argument("{}: \"{}\" is \"{}\"; valid: {}", origin_, key, name, known);
    }
  }

  absl::Status status;

 private:
  template <typename T>
  void take(const char* key, T& value) {
    if (!status.ok()) {
      return;
    }
    absl::StatusOr<T> given = json_get_or<T>(params_, key, value, origin_);
    if (given.ok()) {
      value = *std::move(given);
    } else {
      status = given.status();
    }
  }

  const Json& params_;
  std::string_view origin_;
};

template <typename Scoring, typename Visitor>
void visit_scoring(Scoring& scoring, Visitor& visit) {
  visit("first_line", scoring.first_line, kFirstLines);
  visit("code_ratio", scoring.code_ratio, kCodeRatios);
  visit("rouge_recursion_limit", scoring.rouge_recursion_limit);
}

template <typename Protocol, typename Visitor>
void visit_fields(Protocol& protocol, Visitor& visit) {
  visit("truncation", protocol.truncation, kTruncations);
  visit("max_prompt_tokens", protocol.max_prompt_tokens);
  visit("clean_up_spaces", protocol.clean_up_spaces);
  visit("chat_template", protocol.chat_template, kTemplateUses);
  visit("template_models", protocol.template_models, kTemplateModels);
  visit("bos", protocol.bos_rule, kBosRules);
  visit("tokenise_in_parts", protocol.tokenise_in_parts);
  visit("cue_as_answer_prefix", protocol.cue_as_answer_prefix);
  visit("extra_new_tokens", protocol.extra_new_tokens);
  visit("min_new_tokens", protocol.min_new_tokens);
  visit("samsum_min_new_tokens", protocol.samsum_min_new_tokens);
  visit("samsum_stops_at_newline", protocol.samsum_stops_at_newline);
  visit_scoring(protocol.scoring, visit);
}

}  // namespace

std::vector<std::string> longbench_protocol_names() {
  std::vector<std::string> names;
  for (const LongBenchProtocol& protocol : protocols()) {
    names.push_back(protocol.name);
  }
  return names;
}

absl::StatusOr<LongBenchProtocol> resolve_longbench_protocol(const Json& params) {
  constexpr std::string_view kOrigin = "longbench";
  KVLAB_ASSIGN_OR_RETURN(
      const std::string name,
      json_get_or<std::string>(params, "protocol", protocols().front().name, kOrigin));
  const auto named = std::find_if(protocols().begin(), protocols().end(),
                                  [&](const auto& protocol) { return protocol.name == name; });
  if (named == protocols().end()) {
    return invalid_argument("{}: there is no protocol \"{}\"; valid: {}", kOrigin, name,
                            fmt::join(longbench_protocol_names(), ", "));
  }
  LongBenchProtocol protocol = *named;
  Reader reader(params, kOrigin);
  visit_fields(protocol, reader);
  KVLAB_RETURN_IF_ERROR(reader.status);
  if (protocol.max_prompt_tokens == 1) {
    return invalid_argument("{}: \"max_prompt_tokens\" is 1; it must be 0 (no limit) or at least 2",
                            kOrigin);
  }
  return protocol;
}

Json longbench_protocol_json(const LongBenchProtocol& protocol) {
  Writer writer;
  visit_fields(protocol, writer);
  writer.out["name"] = protocol.name;
  return writer.out;
}

std::vector<std::string> longbench_protocol_keys() {
  std::vector<std::string> keys = {"protocol"};
  Writer writer;
  visit_fields(protocols().front(), writer);
  for (const auto& [key, value] : writer.out.items()) {
    keys.push_back(key);
  }
  return keys;
}

Json longbench_scoring_json(const LongBenchTask& task, const LongBenchScoring& scoring) {
  LongBenchScoring of_task = scoring;
  of_task.first_line = task.first_line_only ? scoring.first_line : FirstLine::kNone;
  Writer writer;
  visit_scoring(of_task, writer);
  return writer.out;
}

absl::StatusOr<LongBenchScoring> parse_longbench_scoring(const Json& json,
                                                         std::string_view origin) {
  LongBenchScoring scoring;
  Reader reader(json, origin);
  visit_scoring(scoring, reader);
  KVLAB_RETURN_IF_ERROR(reader.status);
  return scoring;
}

}  // namespace kvlab
