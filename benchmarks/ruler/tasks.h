// RULER's thirteen tasks (Hsieh et al., 2024; NVIDIA/RULER scripts/synthetic.yaml) as data.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

enum class RulerFamily { kNeedles, kVariables, kCommonWords, kFrequentWords, kQuestions };
enum class NeedleFiller { kNoise, kEssay, kNeedles };
enum class NeedleToken { kWord, kNumber, kUuid };

struct RulerTask {
  std::string_view name;
  RulerFamily family;
  int64_t tokens_to_generate;
  bool any_reference = false;  // scored by whether any reference is found, not by the share found

  // kNeedles only.
  NeedleFiller filler = NeedleFiller::kNoise;
  NeedleToken key = NeedleToken::kWord;
  NeedleToken value = NeedleToken::kNumber;
  size_t keys = 1;
  size_t values = 1;
  size_t queries = 1;

  // kQuestions only: "squad" or "hotpotqa".
  std::string_view question_set = {};
};

const std::vector<RulerTask>& ruler_tasks();

// Unknown names are an error that lists the thirteen.
absl::StatusOr<const RulerTask*> find_ruler_task(std::string_view name);

// Byte offset in a prompt of `task` where the question after the context starts; text.size()
// where the prompt does not look like the task's.
size_t ruler_question_begin(const RulerTask& task, std::string_view prompt);

}  // namespace kvlab
