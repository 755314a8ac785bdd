#include "benchmarks/ruler/tasks.h"

#include <fmt/format.h>

#include "harness/base/status.h"

namespace kvlab {
namespace {

RulerTask needles(std::string_view name, NeedleFiller filler, NeedleToken key, NeedleToken value,
                  size_t keys = 1, size_t values = 1, size_t queries = 1) {
  RulerTask task{name, RulerFamily::kNeedles, 128};
  task.filler = filler;
  task.key = key;
  task.value = value;
  task.keys = keys;
  task.values = values;
  task.queries = queries;
  return task;
}

RulerTask questions(std::string_view name, std::string_view set) {
  RulerTask task{name, RulerFamily::kQuestions, 32, true};
  task.question_set = set;
  return task;
}

}  // namespace

const std::vector<RulerTask>& ruler_tasks() {
  using enum NeedleFiller;
  using enum NeedleToken;
  static const std::vector<RulerTask> tasks = {
      needles("niah_single_1", kNoise, kWord, kNumber),
      needles("niah_single_2", kEssay, kWord, kNumber),
      needles("niah_single_3", kEssay, kWord, kUuid),
      needles("niah_multikey_1", kEssay, kWord, kNumber, 4),
      needles("niah_multikey_2", kNeedles, kWord, kNumber),
      needles("niah_multikey_3", kNeedles, kUuid, kUuid),
      needles("niah_multivalue", kEssay, kWord, kNumber, 1, 4),
      needles("niah_multiquery", kEssay, kWord, kNumber, 4, 1, 4),
      {"vt", RulerFamily::kVariables, 30},
      {"cwe", RulerFamily::kCommonWords, 120},
      {"fwe", RulerFamily::kFrequentWords, 50},
      questions("qa_1", "squad"),
      questions("qa_2", "hotpotqa"),
  };
  return tasks;
}

absl::StatusOr<const RulerTask*> find_ruler_task(std::string_view name) {
  std::string known;
  for (const RulerTask& task : ruler_tasks()) {
    if (task.name == name) {
      return &task;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", task.name);
  }
  return invalid_argument("RULER has no task '{}'; it has {}", name, known);
}

size_t ruler_question_begin(const RulerTask& task, std::string_view prompt) {
  const auto after_last = [&](std::string_view marker, size_t skip) {
    const size_t found = prompt.rfind(marker);
    return found == prompt.npos ? prompt.size() : found + skip;
  };
  switch (task.family) {
    case RulerFamily::kNeedles:
      return after_last("\nWhat ", 1);
    case RulerFamily::kQuestions:
      return after_last("\n\nAnswer the question based on the given documents.", 2);
    case RulerFamily::kVariables:
    case RulerFamily::kCommonWords:
    case RulerFamily::kFrequentWords:
      return after_last("\nQuestion: ", 1);
  }
  return prompt.size();
}

}  // namespace kvlab
