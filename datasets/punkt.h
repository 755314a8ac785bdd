// Sentence splitting as NLTK's pretrained Punkt does (Kiss and Strunk, "Unsupervised Multilingual
// Sentence Boundary Detection", 2006; NLTK 3.9's token rules). The parameters are read from a
// punkt_tab folder, which is not part of kvlab.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace kvlab {

class PunktSplitter {
 public:
  // Reads abbrev_types.txt, collocations.tab, ortho_context.tab and sent_starters.txt from `dir`
  // or from `dir`/english.
  static absl::StatusOr<PunktSplitter> load(const std::filesystem::path& dir);

  // The sentences of valid UTF-8 `text`, in order, as sent_tokenize(text) gives them: without the
  // white space between them.
  std::vector<std::string> sentences(std::string_view text) const;

  // SHA-256 over the four parameter files.
  const std::string& content_hash() const { return content_hash_; }

 private:
  struct Token;
  struct Span {
    size_t begin = 0;
    size_t end = 0;
  };

  std::vector<Span> break_spans(std::u32string_view text) const;
  bool has_break_before_last_token(std::u32string_view context) const;
  Token make_token(std::u32string_view text) const;
  void reconsider(Token& token, const Token& next) const;
  enum class Start { kYes, kNo, kUnknown };
  Start starts_sentence(const Token& token) const;
  uint32_t orthography(const Token& token) const;

  std::unordered_set<std::string> abbreviations_;
  std::set<std::pair<std::string, std::string>> collocations_;
  std::unordered_set<std::string> sentence_starters_;
  std::unordered_map<std::string, uint32_t> orthography_;
  std::string content_hash_;
};

}  // namespace kvlab
