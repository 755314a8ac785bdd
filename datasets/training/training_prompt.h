// One training prompt: what the model is asked, before its own reply is generated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvlab {

struct TrainingPrompt {
  std::string kind;           // "facts", "records", ...; see prompt_kinds.h
  std::string text;           // the user's turn, or the whole prompt when `chat_template` is false
  std::string answer_prefix;  // forced beginning of the reply
  bool chat_template = true;
  int64_t max_new_tokens = 0;
  // The reply in an instruction file, or the right answer where a kind of prompt knows it, as it
  // goes on from answer_prefix; empty: unknown.
  std::string given_reply;
};

}  // namespace kvlab
