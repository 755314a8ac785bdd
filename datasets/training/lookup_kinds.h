// Prompts that ask for something planted in the text: facts, examples of them, records, aliases,
// counted words.
#pragma once

#include "datasets/training/prompt_kinds.h"

namespace kvlab {

TrainingPrompt make_facts_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_several_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_identifiers_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_examples_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_records_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_aliases_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_counts_prompt(const PromptContext& context, SeededRandom& random);

}  // namespace kvlab
