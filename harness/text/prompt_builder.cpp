#include "harness/text/prompt_builder.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

// What transformers does to decoded text under clean_up_tokenization_spaces, in its order.
std::string clean_up(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kReplacements = {
      {{" .", "."},
       {" ?", "?"},
       {" !", "!"},
       {" ,", ","},
       {" ' ", "'"},
       {" n't", "n't"},
       {" 'm", "'m"},
       {" 's", "'s"},
       {" 've", "'ve"},
       {" 're", "'re"}}};
  for (const auto& [from, to] : kReplacements) {
    std::string out;
    size_t begin = 0;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, begin)) {
      out.append(text, begin, at - begin).append(to);
      begin = at + from.size();
    }
    text = out.append(text, begin);
  }
  return text;
}

// The user's text as it goes into the prompt, and where its question is then.
struct UserText {
  std::string text;
  std::optional<size_t> question_begin;  // absent: none, or truncated away
};

UserText truncate_middle(const PromptRequest& request, const Tokenizer& tokenizer,
                         PromptFacts& facts) {
  UserText user = {std::string(request.user_text), std::nullopt};
  if (request.question_begin < user.text.size()) {
    user.question_begin = request.question_begin;
  }
  if (request.truncation != Truncation::kMiddle || request.max_prompt_tokens == 0) {
    return user;
  }
  const std::vector<int32_t> ids = tokenizer.encode(user.text, /*add_special_tokens=*/true);
  facts.tokens_before_truncation = static_cast<int64_t>(ids.size());
  if (facts.tokens_before_truncation <= request.max_prompt_tokens) {
    return user;
  }
  facts.truncated = true;
  const std::span<const int32_t> all = ids;
  const auto half = static_cast<size_t>(request.max_prompt_tokens / 2);
  const auto decode = [&](std::span<const int32_t> part) {
    std::string text = tokenizer.decode(part, /*skip_special_tokens=*/true);
    return request.clean_up_spaces ? clean_up(std::move(text)) : text;
  };
  user.text = decode(all.first(half)) + decode(all.last(half));
  if (user.question_begin) {
    const std::string_view question = request.user_text.substr(request.question_begin);
    user.question_begin.reset();
    if (user.text.ends_with(question)) {
      user.question_begin = user.text.size() - question.size();
    }
  }
  return user;
}

struct Rendered {
  std::string text;
  size_t user_end = 0;  // where the user's text ends in `text`
  std::optional<size_t> question_begin;
};

Rendered render(const PromptRequest& request, const UserText& user, const PromptFormat& format) {
  Rendered out;
  if (!request.chat_template) {
    out.text = user.text + std::string(request.answer_prefix);
    out.user_end = user.text.size();
    out.question_begin = user.question_begin;
    return out;
  }
  out.text = format.render(user.text, request.answer_prefix);
  out.user_end = out.text.size() - format.after_user.size() - request.answer_prefix.size();
  if (user.question_begin) {
    // The template may have stripped white space at both ends of the user's text.
    const size_t begin = format.before_user.size();
    const std::string_view inside = std::string_view(out.text).substr(begin, out.user_end - begin);
    const size_t stripped = user.text.find(inside);
    const size_t question = std::max(*user.question_begin, stripped) - stripped;
    out.question_begin = std::min(begin + question, out.user_end);
  }
  return out;
}

std::string tail_of(std::string_view text) {
  constexpr size_t kTailBytes = 240;
  if (text.size() <= kTailBytes) {
    return std::string(text);
  }
  size_t begin = text.size() - kTailBytes;
  while (begin < text.size() && (static_cast<uint8_t>(text[begin]) & 0xC0U) == 0x80U) {
    ++begin;
  }
  return std::string(text.substr(begin));
}

// A text that someone else put into a chat template would get a second one around it.
absl::Status check_not_templated(std::string_view user_text, const Tokenizer& tokenizer) {
  constexpr size_t kLongestSpecialToken = 64;
  const std::vector<int32_t> ids =
      tokenizer.encode(user_text.substr(0, kLongestSpecialToken), /*add_special_tokens=*/false);
  if (ids.empty() || !tokenizer.is_special(ids.front())) {
    return absl::OkStatus();
  }
  return failed_precondition(
      "the text begins with the special token {}, so a chat template is around it already, and the "
      "model's would be a second one: set \"chat_template\": false, or give the text without",
      tokenizer.decode({ids.data(), 1}, /*skip_special_tokens=*/false));
}

// Counts BOS tokens and refuses a number at the start that the rule does not expect.
absl::Status check_bos(std::span<const int32_t> ids, std::optional<int32_t> bos_id,
                       PromptFacts& facts) {
  if (!bos_id) {
    return absl::OkStatus();
  }
  const auto first_other =
      std::find_if(ids.begin(), ids.end(), [&](int32_t id) { return id != *bos_id; });
  facts.leading_bos = first_other - ids.begin();
  facts.inner_bos = std::count(first_other, ids.end(), *bos_id);
  if (facts.leading_bos != facts.expected_bos) {
    return failed_precondition(
        "the prompt starts with {} BOS tokens, expected {}: the text, the chat template and the "
        "tokenizer's post-processor do not agree on who adds it",
        facts.leading_bos, facts.expected_bos);
  }
  return absl::OkStatus();
}

// Tokenises in one go, or in two parts at `split`, of which the first may be cut at its end.
absl::Status tokenise(const PromptRequest& request, const Rendered& rendered,
                      const Tokenizer& tokenizer, bool add_special_tokens, BuiltPrompt& built) {
  PromptFacts& facts = built.facts;
  facts.tokenised_in_parts =
      request.in_parts || request.split_question || request.truncation == Truncation::kTail;
  if (!facts.tokenised_in_parts) {
    built.token_ids = tokenizer.encode(rendered.text, add_special_tokens);
    return absl::OkStatus();
  }
  if (request.split_question && !rendered.question_begin) {
    return failed_precondition("{}", facts.truncated
                                         ? "the question did not survive truncation whole, so it "
                                           "cannot be kept apart; raise max_prompt_tokens"
                                         : "the prompt has no question that could be kept apart");
  }
  const std::string_view text = rendered.text;
  const size_t split = request.split_question ? *rendered.question_begin : rendered.user_end;
  built.token_ids = tokenizer.encode(text.substr(0, split), add_special_tokens);
  if (request.truncation == Truncation::kTail && request.max_prompt_tokens > 0) {
    facts.tokens_before_truncation = static_cast<int64_t>(built.token_ids.size());
    const auto limit = static_cast<size_t>(request.max_prompt_tokens);
    facts.truncated = built.token_ids.size() > limit;
    built.token_ids.resize(std::min(built.token_ids.size(), limit));
  }
  if (request.split_question) {
    built.question_start = static_cast<int64_t>(built.token_ids.size());
  }
  const std::vector<int32_t> rest =
      tokenizer.encode(text.substr(split), /*add_special_tokens=*/false);
  built.token_ids.insert(built.token_ids.end(), rest.begin(), rest.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BuiltPrompt> build_prompt(const PromptRequest& request, const Tokenizer& tokenizer,
                                         const PromptFormat& format) {
  if (request.user_text.empty()) {
    return invalid_argument("the prompt is empty");
  }
  if (request.max_prompt_tokens < 0 || request.max_prompt_tokens == 1) {
    return invalid_argument("max_prompt_tokens is {}; it must be 0 (no limit) or at least 2",
                            request.max_prompt_tokens);
  }
  if (request.chat_template) {
    KVLAB_RETURN_IF_ERROR(check_not_templated(request.user_text, tokenizer));
  }
  BuiltPrompt built;
  built.facts.chat_template = request.chat_template;
  built.facts.has_answer_prefix = !request.answer_prefix.empty();
  const UserText user = truncate_middle(request, tokenizer, built.facts);
  const Rendered rendered = render(request, user, format);
  built.facts.text_hash = sha256_hex(rendered.text);
  built.facts.text_tail = tail_of(rendered.text);

  const std::optional<int32_t> bos_id = tokenizer.bos_id();
  const bool text_has_bos =
      bos_id && rendered.text.starts_with(tokenizer.decode({&*bos_id, 1}, false));
  const bool doubled = request.bos_rule == BosRule::kOfficialDouble && text_has_bos;
  built.facts.expected_bos = (bos_id ? 1 : 0) + (doubled ? 1 : 0);
  KVLAB_RETURN_IF_ERROR(tokenise(request, rendered, tokenizer,
                                 /*add_special_tokens=*/!text_has_bos || doubled, built));
  if (built.token_ids.empty()) {
    return invalid_argument("the prompt has no tokens");
  }
  KVLAB_RETURN_IF_ERROR(check_bos(built.token_ids, bos_id, built.facts));
  return built;
}

absl::StatusOr<std::vector<int32_t>> stop_token_ids(std::span<const std::string> stop_texts,
                                                    std::span<const int32_t> eos_ids,
                                                    const Tokenizer& tokenizer) {
  std::set<int32_t> ids(eos_ids.begin(), eos_ids.end());
  for (const std::string& text : stop_texts) {
    const std::vector<int32_t> tokens = tokenizer.encode(text, /*add_special_tokens=*/false);
    if (tokens.empty()) {
      return invalid_argument("the stop text \"{}\" has no tokens", text);
    }
    ids.insert(tokens.back());
  }
  return std::vector<int32_t>(ids.begin(), ids.end());
}

}  // namespace kvlab
