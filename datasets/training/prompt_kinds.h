// The kinds of training prompts. Every kind asks for something that stands in the text, in
// wordings of its own: none is taken from a benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/training/documents.h"
#include "datasets/training/filler.h"
#include "datasets/training/seeded_random.h"
#include "datasets/training/training_prompt.h"

namespace kvlab {

struct PromptContext {
  const TrainingCorpus* corpus;
  TokenCounter count;
  int64_t tokens;  // wanted prompt length
};

// Room for the instruction, the question and the chat template.
constexpr int64_t kOverheadTokens = 120;

using PromptMaker = TrainingPrompt (*)(const PromptContext& context, SeededRandom& random);

struct PromptKind {
  const char* name;
  const char* summary;
  PromptMaker make;
};

// "facts", "several", "identifiers", "examples", "records", "aliases", "counts", "passages",
// "questions", "completion", "summary", "continuation", "few_shot".
const std::vector<PromptKind>& prompt_kinds();

}  // namespace kvlab
