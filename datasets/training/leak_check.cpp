#include "datasets/training/leak_check.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c & 0x80) != 0;
    const bool upper = c >= 'A' && c <= 'Z';
    if (letter || upper) {
      word += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) {
    words.push_back(std::move(word));
  }
  return words;
}

// Calls `visit(hash, first word)` for every 13-gram until it returns false.
void for_each_ngram(const std::vector<std::string>& words,
                    const std::function<bool(uint64_t, size_t)>& visit) {
  std::vector<uint64_t> hashes;
  hashes.reserve(words.size());
  for (const std::string& word : words) {
    hashes.push_back(std::hash<std::string>{}(word));
  }
  for (size_t i = 0; i + NgramIndex::kWords <= words.size(); ++i) {
    uint64_t hash = 0xCBF29CE484222325ULL;
    for (size_t k = 0; k < NgramIndex::kWords; ++k) {
      hash = (hash ^ hashes[i + k]) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29U;
    }
    if (!visit(hash, i)) {
      return;
    }
  }
}

void add_strings(const Json& value, NgramIndex& index) {
  if (value.is_string()) {
    index.add(value.get_ref<const std::string&>());
  } else if (value.is_structured()) {
    for (const Json& child : value) {
      add_strings(child, index);
    }
  }
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

absl::Status add_file(const std::filesystem::path& path, NgramIndex& index) {
  const std::string ending = path.extension().string();
  if (ending == ".jsonl") {
    KVLAB_ASSIGN_OR_RETURN(const std::vector<Json> lines, read_json_lines(path));
    for (const Json& line : lines) {
      add_strings(line, index);
    }
  } else if (ending == ".json") {
    KVLAB_ASSIGN_OR_RETURN(const Json value,
                           read_json_file(path, {.refuse_duplicate_keys = false}));
    add_strings(value, index);
  } else if (ending == ".txt" || std::none_of(ending.begin(), ending.end(), is_letter)) {
    KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
    index.add(text);
  }
  return absl::OkStatus();
}

}  // namespace

void NgramIndex::add(std::string_view text) {
  for_each_ngram(words_of(text), [&](uint64_t hash, size_t) {
    hashes_.insert(hash);
    return true;
  });
}

absl::Status NgramIndex::add_files(const std::filesystem::path& path) {
  if (std::filesystem::is_regular_file(path)) {
    return add_file(path, *this);
  }
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file()) {
      KVLAB_RETURN_IF_ERROR(add_file(it->path(), *this));
    }
  }
  if (error) {
    return not_found("{}: cannot be read: {}", path.string(), error.message());
  }
  return absl::OkStatus();
}

std::optional<std::string> NgramIndex::first_shared(std::string_view text) const {
  const std::vector<std::string> words = words_of(text);
  std::optional<std::string> found;
  for_each_ngram(words, [&](uint64_t hash, size_t first) {
    if (!hashes_.contains(hash)) {
      return true;
    }
    std::string shared;
    for (size_t k = 0; k < kWords; ++k) {
      shared += (k == 0 ? "" : " ") + words[first + k];
    }
    found = std::move(shared);
    return false;
  });
  return found;
}

}  // namespace kvlab
