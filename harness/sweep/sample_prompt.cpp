#include "harness/sweep/sample_prompt.h"

#include <algorithm>

#include "harness/base/status.h"

namespace kvlab {
namespace {

struct Truncated {
  std::string text;
  bool changed = false;
};

// LongBench's rule (pred.py): the first and last half of the ids, decoded without special tokens
// and joined; the result is tokenised again later.
Truncated truncate(const Sample& sample, const Tokenizer& tokenizer) {
  if (sample.truncation == Truncation::kNone || sample.max_prompt_tokens <= 0) {
    return {sample.prompt, false};
  }
  const std::vector<int32_t> ids = tokenizer.encode(sample.prompt, /*add_special_tokens=*/true);
  const auto limit = static_cast<size_t>(sample.max_prompt_tokens);
  if (ids.size() <= limit) {
    return {sample.prompt, false};
  }
  const std::span<const int32_t> all(ids);
  if (sample.truncation == Truncation::kTail) {
    return {tokenizer.decode(all.first(limit), /*skip_special_tokens=*/true), true};
  }
  const size_t half = limit / 2;
  return {tokenizer.decode(all.first(half), true) + tokenizer.decode(all.last(half), true), true};
}

// Where `offset` bytes of `text` end in its token ids: the longest common beginning of the ids of
// the whole and of the part, so that the whole prompt is always tokenised in one piece.
int64_t token_at(const std::string& text, size_t offset, const std::vector<int32_t>& ids,
                 bool add_special, const Tokenizer& tokenizer) {
  const std::vector<int32_t> part =
      tokenizer.encode(std::string_view(text).substr(0, offset), add_special);
  const auto [a, b] = std::mismatch(ids.begin(), ids.end(), part.begin(), part.end());
  return a - ids.begin();
}

}  // namespace

std::string protocol_name(const Json& protocol, const std::string& benchmark) {
  const auto it = protocol.is_object() ? protocol.find("name") : protocol.end();
  return protocol.is_object() && it != protocol.end() && it->is_string() ? it->get<std::string>()
                                                                        : benchmark;
}

absl::StatusOr<SamplePrompt> build_sample_prompt(const Sample& sample, const Json& protocol,
                                                 const Tokenizer& tokenizer,
                                                 const PromptFormat& format) {
  (void)protocol;
  SamplePrompt prompt;
  const Truncated user = truncate(sample, tokenizer);
  prompt.truncated = user.changed;
  prompt.templated = sample.chat_template;
  if (user.text.empty()) {
    return invalid_argument("the prompt is empty");
  }
  prompt.text = sample.chat_template ? format.render(user.text, sample.answer_prefix)
                                     : user.text + sample.answer_prefix;
  // A template that writes the beginning-of-text token itself must not get a second one.
  const std::optional<int32_t> bos = tokenizer.bos_id();
  const std::vector<int32_t> plain = tokenizer.encode(prompt.text, /*add_special_tokens=*/false);
  const bool add_special = bos && (plain.empty() || plain.front() != *bos);
  prompt.token_ids = add_special ? tokenizer.encode(prompt.text, true) : plain;
  if (prompt.token_ids.empty()) {
    return invalid_argument("the prompt has no tokens");
  }
  if (bos) {
    prompt.bos_count = std::find_if(prompt.token_ids.begin(), prompt.token_ids.end(),
                                    [&](int32_t id) { return id != *bos; }) -
                       prompt.token_ids.begin();
  }
  const int64_t expected = bos ? 1 : 0;
  if (prompt.bos_count != expected) {
    return failed_precondition(
        "the prompt begins with {} beginning-of-text tokens, this tokenizer's prompts have {}",
        prompt.bos_count, expected);
  }
  const size_t question_bytes = sample.prompt.size() - std::min(sample.question_begin,
                                                                sample.prompt.size());
  if (question_bytes > 0 && question_bytes < user.text.size()) {
    const size_t user_begin = prompt.text.find(user.text);
    if (user_begin != std::string::npos) {
      const size_t offset = user_begin + user.text.size() - question_bytes;
      prompt.question_start = token_at(prompt.text, offset, prompt.token_ids, add_special,
                                       tokenizer);
    }
  }
  return prompt;
}

}  // namespace kvlab
