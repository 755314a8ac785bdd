// English word lists: the wonderwords lists that RULER's needles and common words come from.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kvlab {

struct WordLists {
  std::vector<std::string> nouns;
  std::vector<std::string> adjectives;
  std::vector<std::string> verbs;
  std::string content_hash;  // SHA-256 over the three files

  // Reads nounlist.txt, adjectivelist.txt and verblist.txt in `dir` or in `dir`/wonderwords.
  static absl::StatusOr<WordLists> load(const std::filesystem::path& dir);

  // sorted(set(nouns + adjectives + verbs)).
  std::vector<std::string> all_words() const;
};

// A large list of English words: english_words.json (an object whose values are the words, as in
// NVIDIA's repository), or a text file of words (dwyl_words_alpha.txt, words_alpha.txt) in `dir`.
struct EnglishWords {
  std::vector<std::string> words;
  std::string content_hash;

  static absl::StatusOr<EnglishWords> load(const std::filesystem::path& dir);
};

// Every "adjective-noun" pair, sorted by code point and without repeats, by index. The millions
// of pairs are not stored: neighbours share their adjective.
class WordPairs {
 public:
  explicit WordPairs(const WordLists& lists);

  size_t size() const { return size_; }
  std::string at(size_t index) const;

 private:
  // Pairs of one adjective, or, where "a-" begins another adjective, the merged pairs of both.
  struct Block {
    size_t begin = 0;
    std::string adjective;
    std::vector<std::string> merged;
  };

  std::vector<std::string> nouns_;
  std::vector<Block> blocks_;
  size_t size_ = 0;
};

}  // namespace kvlab
