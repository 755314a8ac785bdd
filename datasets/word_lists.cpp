#include "datasets/word_lists.h"

#include <algorithm>
#include <array>

#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/text/python_utf8.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

std::vector<std::string> sorted_unique(std::vector<std::string> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace

absl::StatusOr<WordLists> WordLists::load(const std::filesystem::path& dir) {
  std::filesystem::path folder = dir;
  if (!std::filesystem::exists(folder / "nounlist.txt")) {
    folder /= "wonderwords";
  }
  WordLists lists;
  std::string all;
  using List = std::vector<std::string> WordLists::*;
  const std::array<std::pair<const char*, List>, 3> files = {
      {{"nounlist.txt", &WordLists::nouns},
       {"adjectivelist.txt", &WordLists::adjectives},
       {"verblist.txt", &WordLists::verbs}}};
  for (const auto& [name, list] : files) {
    KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(folder / name));
    lists.*list = rstripped_lines(to_valid_utf8(text));
    if ((lists.*list).empty()) {
      return data_loss("{}: no words in it", (folder / name).string());
    }
    all += text;
    all += '\0';
  }
  lists.content_hash = sha256_hex(all);
  return lists;
}

std::vector<std::string> WordLists::all_words() const {
  std::vector<std::string> words = nouns;
  words.insert(words.end(), adjectives.begin(), adjectives.end());
  words.insert(words.end(), verbs.begin(), verbs.end());
  return sorted_unique(std::move(words));
}

absl::StatusOr<EnglishWords> EnglishWords::load(const std::filesystem::path& dir) {
  EnglishWords english;
  const std::filesystem::path json_path = dir / "english_words.json";
  if (std::filesystem::exists(json_path)) {
    KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(json_path));
    // The order of the file counts, which a sorted object would lose.
    const auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!parsed.is_object()) {
      return data_loss("{}: no JSON object of words", json_path.string());
    }
    for (const auto& [key, value] : parsed.items()) {
      if (!value.is_string()) {
        return data_loss("{}: the value of '{}' is no word", json_path.string(), key);
      }
      english.words.push_back(value.get<std::string>());
    }
    english.content_hash = sha256_hex(text);
    return english;
  }
  for (const char* name : {"dwyl_words_alpha.txt", "words_alpha.txt"}) {
    if (std::filesystem::exists(dir / name)) {
      KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(dir / name));
      english.words = rstripped_lines(to_valid_utf8(text));
      english.content_hash = sha256_hex(text);
      return english;
    }
  }
  return not_found("{}: holds neither english_words.json nor words_alpha.txt", dir.string());
}

WordPairs::WordPairs(const WordLists& lists) : nouns_(sorted_unique(lists.nouns)) {
  std::vector<std::string> stems;
  for (const std::string& adjective : sorted_unique(lists.adjectives)) {
    stems.push_back(adjective + "-");
  }
  std::sort(stems.begin(), stems.end());
  for (size_t i = 0; i < stems.size();) {
    size_t end = i + 1;
    while (end < stems.size() && stems[end].starts_with(stems[i])) {
      ++end;
    }
    Block block;
    block.begin = size_;
    block.adjective = stems[i];
    if (end - i > 1) {
      for (; i < end; ++i) {
        for (const std::string& noun : nouns_) {
          block.merged.push_back(stems[i] + noun);
        }
      }
      block.merged = sorted_unique(std::move(block.merged));
    }
    size_ += block.merged.empty() ? nouns_.size() : block.merged.size();
    blocks_.push_back(std::move(block));
    i = end;
  }
}

std::string WordPairs::at(size_t index) const {
  KVLAB_CHECK(index < size_);
  const auto after = std::upper_bound(blocks_.begin(), blocks_.end(), index,
                                      [](size_t i, const Block& block) { return i < block.begin; });
  const Block& block = *std::prev(after);
  const size_t offset = index - block.begin;
  return block.merged.empty() ? block.adjective + nouns_[offset] : block.merged[offset];
}

}  // namespace kvlab
