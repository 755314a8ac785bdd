#include "harness/text/added_tokens.h"

#include <algorithm>

#include "harness/text/bpe.h"
#include "harness/text/character_class.h"
#include "harness/text/normalizer.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

constexpr int64_t kLargestId = int64_t{1} << 22U;

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word_character(code_point_at(text, last_character(text)).code_point);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word_character(code_point_at(text, 0).code_point);
}

size_t skip_spaces_left(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t at = last_character(text.substr(0, end));
    if (!is_white_space(code_point_at(text, at).code_point)) {
      break;
    }
    end = at;
  }
  return end;
}

size_t skip_spaces_right(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const CodePointAt here = code_point_at(text, begin);
    if (!is_white_space(here.code_point)) {
      break;
    }
    begin += here.length;
  }
  return begin;
}

absl::StatusOr<AddedToken> read_token(const Json& entry, std::string_view where) {
  AddedToken token;
  KVLAB_ASSIGN_OR_RETURN(const int64_t id, json_get<int64_t>(entry, "id", where));
  if (id < 0 || id > kLargestId) {
    return invalid_argument("{}.id should be from 0 to {}, but is {}", where, kLargestId, id);
  }
  token.id = static_cast<int32_t>(id);
  KVLAB_ASSIGN_OR_RETURN(token.content, json_get<std::string>(entry, "content", where));
  KVLAB_ASSIGN_OR_RETURN(token.special, json_get_or<bool>(entry, "special", false, where));
  KVLAB_ASSIGN_OR_RETURN(token.single_word, json_get_or<bool>(entry, "single_word", false, where));
  KVLAB_ASSIGN_OR_RETURN(token.lstrip, json_get_or<bool>(entry, "lstrip", false, where));
  KVLAB_ASSIGN_OR_RETURN(token.rstrip, json_get_or<bool>(entry, "rstrip", false, where));
  KVLAB_ASSIGN_OR_RETURN(token.normalized,
                         json_get_or<bool>(entry, "normalized", !token.special, where));
  return token;
}

}  // namespace

TokenMatcher::TokenMatcher() : nodes_(1) {}

int32_t TokenMatcher::child(int32_t node, char byte) const {
  for (const auto& [edge, next] : nodes_[static_cast<size_t>(node)].children) {
    if (edge == byte) {
      return next;
    }
  }
  return -1;
}

void TokenMatcher::add(std::string_view spelling, const AddedToken& token) {
  if (spelling.empty()) {
    return;
  }
  starts_[static_cast<unsigned char>(spelling[0])] = true;
  int32_t node = 0;
  for (const char byte : spelling) {
    int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      nodes_[static_cast<size_t>(node)].children.emplace_back(byte, next);
    }
    node = next;
  }
  if (int32_t& slot = nodes_[static_cast<size_t>(node)].token; slot < 0) {
    slot = static_cast<int32_t>(tokens_.size());
    tokens_.push_back(token);
  }
}

void TokenMatcher::split(std::string_view text, std::vector<TextPart>& parts) const {
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    if (!starts_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    int32_t found = -1;
    size_t found_end = 0;
    int32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      node = child(node, text[i]);
      if (node < 0) {
        break;
      }
      if (const int32_t token = nodes_[static_cast<size_t>(node)].token; token >= 0) {
        found = token;
        found_end = i + 1;
      }
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    size_t begin = at;
    size_t end = found_end;
    at = found_end;
    if (token.single_word &&
        (ends_with_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) {
      begin = std::max(skip_spaces_left(text, begin), done);
    }
    if (token.rstrip) {
      end = skip_spaces_right(text, end);
    }
    if (done < begin) {
      parts.push_back({std::nullopt, done, begin});
    }
    parts.push_back({token.id, begin, end});
    done = end;
  }
  if (done < text.size()) {
    parts.push_back({std::nullopt, done, text.size()});
  }
}

absl::StatusOr<AddedTokens> AddedTokens::from_json(const Json& added_tokens, std::string_view where,
                                                   const Bpe& model, const Normalizer& normalizer) {
  AddedTokens made;
  if (added_tokens.is_null()) {
    return made;
  }
  if (!added_tokens.is_array()) {
    return invalid_argument("{} should be a list", where);
  }
  for (size_t i = 0; i < added_tokens.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", where, i);
    KVLAB_ASSIGN_OR_RETURN(AddedToken token, read_token(added_tokens[i], here));
    if (token.content.empty()) {
      continue;
    }
    const std::optional<int32_t> model_id = model.token_id(token.content);
    if (model_id && *model_id != token.id) {
      return invalid_argument("{}: {} has id {} here and id {} in the model's vocabulary", here,
                              token.content, token.id, *model_id);
    }
    if (const std::string* other = model.token(token.id); other != nullptr && !model_id) {
      return invalid_argument("{}: id {} of {} is the model's token {}", here, token.id,
                              token.content, *other);
    }
    if (!made.by_content_.emplace(token.content, i).second) {
      return invalid_argument("{}: {} is there twice", here, token.content);
    }
    if (!made.by_id_.emplace(token.id, made.tokens_.size()).second) {
      return invalid_argument("{}: id {} is there twice", here, token.id);
    }
    made.by_content_[token.content] = made.tokens_.size();
    made.end_id_ = std::max(made.end_id_, token.id + 1);
    made.tokens_.push_back(std::move(token));
  }
  // Special tokens go first: where two normalised spellings are equal, theirs is kept.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : made.tokens_) {
      if (token.special == special) {
        if (token.normalized) {
          made.normalized_.add(normalizer.apply(token.content), token);
        } else {
          made.raw_.add(token.content, token);
        }
      }
    }
  }
  return made;
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto it = by_content_.find(to_absl(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

void AddedTokens::mark_special(int32_t id) {
  if (const auto it = by_id_.find(id); it != by_id_.end()) {
    tokens_[it->second].special = true;
  }
}

}  // namespace kvlab
