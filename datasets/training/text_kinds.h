// Prompts about running text: passages, questions, completion, summary, continuation, few-shot
// series.
#pragma once

#include "datasets/training/prompt_kinds.h"

namespace kvlab {

TrainingPrompt make_passages_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_questions_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_completion_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_summary_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_continuation_prompt(const PromptContext& context, SeededRandom& random);
TrainingPrompt make_few_shot_prompt(const PromptContext& context, SeededRandom& random);

}  // namespace kvlab
