// From a benchmark's text to the token ids that a model is given: truncation, chat template, answer
// prefix, BOS; and the facts about them that decide whether scores are comparable.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"

namespace kvlab {

enum class Truncation {
  kNone,
  kMiddle,  // LongBench: the first and the last half of the limit are decoded and joined, before
            // the template; tokenised again, the text can differ from the limit by a few tokens
  kTail,    // kvpress: the first tokens are kept of everything up to where the prompt is split
};

enum class BosRule {
  kOne,             // as often as the tokenizer's post-processor puts it: once, or never
  kOfficialDouble,  // the post-processor's comes on top of the template's, as in LongBench's
                    // pred.py
};

struct PromptRequest {
  std::string_view user_text;
  size_t question_begin = std::string_view::npos;  // byte offset in user_text; the end: no question
  std::string_view answer_prefix;
  bool chat_template = true;
  Truncation truncation = Truncation::kNone;
  int64_t max_prompt_tokens = 0;  // limit for truncation, at least 2; 0: none
  BosRule bos_rule = BosRule::kOne;
  bool in_parts = false;         // tokenise what is before and after the split point separately
  bool split_question = false;   // split at the question, not at the end of the user's text
  bool clean_up_spaces = false;  // transformers' clean_up_tokenization_spaces, when truncating
};

struct PromptFacts {
  bool chat_template = false;
  bool has_answer_prefix = false;
  bool tokenised_in_parts = false;
  bool truncated = false;
  int64_t tokens_before_truncation = 0;  // 0 where there is no limit
  int64_t expected_bos = 0;
  int64_t leading_bos = 0;  // always equal to expected_bos: anything else is refused
  int64_t inner_bos = 0;    // further ones, from special tokens written out in the text
  std::string text_hash;    // SHA-256 of the text that was tokenised
  std::string text_tail;    // its end, for people to look at
};

struct BuiltPrompt {
  std::vector<int32_t> token_ids;
  std::optional<int64_t> question_start;  // index of the question's first token; when split there
  PromptFacts facts;
};

// An error, which names no sample: an empty prompt; a text that begins with a special token
// although the chat template is to be put around it; a limit below 2; a number of BOS tokens at the
// start that the rule does not expect; a question to split at that is absent or was truncated away.
absl::StatusOr<BuiltPrompt> build_prompt(const PromptRequest& request, const Tokenizer& tokenizer,
                                         const PromptFormat& format);

// The ids that end a reply: the model's own and, of each text, the last token (as LongBench takes
// it). Ascending, without repetition. A text without tokens is an error.
absl::StatusOr<std::vector<int32_t>> stop_token_ids(std::span<const std::string> stop_texts,
                                                    std::span<const int32_t> eos_ids,
                                                    const Tokenizer& tokenizer);

}  // namespace kvlab
