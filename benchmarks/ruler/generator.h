// RULER prompts as NVIDIA's scripts generate them (NVIDIA/RULER at c3f5e3b), byte for byte.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/ruler/prompt_maker.h"
#include "benchmarks/ruler/tasks.h"
#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"

namespace kvlab {

// Raised whenever equal requests give other bytes than before: cached prompts are made anew.
inline constexpr int kRulerGeneratorVersion = 1;

struct RulerRequest {
  const RulerTask* task = nullptr;
  int64_t length = 4096;  // nominal: prompt, answer prefix and reply allowance in tokens, no BOS
  int64_t samples = 10;
  uint64_t seed = 42;  // below 2^32
  // The model's own template, counted into the length; nullopt: the base template, plain text.
  std::optional<PromptFormat> prompt_format;
};

struct RulerItem {
  int64_t index = 0;      // NVIDIA's `index`: for needle tasks the answer's character position
  std::string input;      // the prompt without the answer prefix, template included
  std::string user_text;  // the same without the template
  std::string answer_prefix;
  std::vector<std::string> outputs;
  int64_t length = 0;                            // tokens of everything, reply allowance included
  std::optional<int64_t> token_position_answer;  // needle tasks: tokens before the answer
};

// Errors: a length no prompt fits (after a bounded number of tries, where the original tries for
// ever), more samples than the question set has, a missing word list.
absl::StatusOr<std::vector<RulerItem>> generate_ruler(const RulerRequest& request,
                                                      const RulerSources& sources,
                                                      const Tokenizer& tokenizer);

// NVIDIA's JSON lines, as its manifest writer gives them.
std::string ruler_json_lines(const std::vector<RulerItem>& items);

}  // namespace kvlab
