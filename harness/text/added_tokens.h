// tokenizer.json's added_tokens: found in the text itself, before anything else cuts it.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

class Bpe;
class Normalizer;

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // only where no word character touches it
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;       // and on its right
  bool normalized = false;   // looked for in the normalised text
  bool special = false;
};

// A part of a text: an added token, or text between added tokens.
struct TextPart {
  std::optional<int32_t> token;
  size_t begin;
  size_t end;
};

// Finds the longest of the leftmost matches of a set of tokens. Immutable once filled.
class TokenMatcher {
 public:
  TokenMatcher();

  // `spelling` is what is looked for; a spelling that is already there keeps its first token.
  void add(std::string_view spelling, const AddedToken& token);
  bool empty() const { return tokens_.empty(); }

  // The parts of `text` (valid UTF-8) in order. Parts of text are not empty.
  void split(std::string_view text, std::vector<TextPart>& parts) const;

 private:
  struct Node {
    std::vector<std::pair<char, int32_t>> children;
    int32_t token = -1;  // index in tokens_
  };
  int32_t child(int32_t node, char byte) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> starts_{};
};

class AddedTokens {
 public:
  static absl::StatusOr<AddedTokens> from_json(const Json& added_tokens, std::string_view where,
                                               const Bpe& model, const Normalizer& normalizer);

  const TokenMatcher& in_raw_text() const { return raw_; }
  const TokenMatcher& in_normalized_text() const { return normalized_; }

  // nullptr where there is none.
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;
  int32_t end_id() const { return end_id_; }  // largest id + 1

  void mark_special(int32_t id);

 private:
  std::vector<AddedToken> tokens_;
  absl::flat_hash_map<int32_t, size_t> by_id_;
  absl::flat_hash_map<std::string, size_t> by_content_;
  TokenMatcher raw_;
  TokenMatcher normalized_;
  int32_t end_id_ = 0;
};

}  // namespace kvlab
