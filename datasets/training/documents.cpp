#include "datasets/training/documents.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr size_t kMinParagraph = 80;
constexpr int kMinWordCount = 20;  // rarer words are names and typing errors

bool is_code_name(std::string_view name) {
  for (const std::string_view ending : {".py.txt", ".c.txt", ".h.txt", ".sh.txt"}) {
    if (name.ends_with(ending)) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> split_paragraphs(const std::string& text) {
  std::vector<std::string> paragraphs;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find("\n\n", begin);
    end = end == std::string::npos ? text.size() : end;
    if (end - begin >= kMinParagraph) {
      paragraphs.push_back(text.substr(begin, end - begin));
    }
    begin = end + 2;
  }
  return paragraphs;
}

void count_words(const std::string& text, std::map<std::string, int>& counts) {
  std::string word;
  bool clean = true;
  for (const char c : text + " ") {
    if (c >= 'a' && c <= 'z') {
      word += c;
      continue;
    }
    clean = clean && (c == ' ' || c == ',' || c == '.');
    if (clean && word.size() >= 4 && word.size() <= 9) {
      ++counts[word];
    }
    word.clear();
    clean = c == ' ';
  }
}

}  // namespace

absl::StatusOr<TrainingCorpus> load_training_corpus(const std::filesystem::path& dir) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::recursive_directory_iterator it(dir, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file() && it->path().extension() == ".txt") {
      paths.push_back(it->path());
    }
  }
  if (error || paths.empty()) {
    return not_found(
        "{}: no text files; scripts/fetch_training_text.py makes this folder, or name one with "
        "SOURCE/NAME.txt files",
        dir.string());
  }
  std::sort(paths.begin(), paths.end());
  TrainingCorpus corpus;
  std::map<std::string, int> counts;
  std::string digest;
  for (const auto& path : paths) {
    TrainingDocument document;
    document.source = path.parent_path().filename().string();
    document.name = path.filename().string();
    document.is_code = is_code_name(document.name);
    KVLAB_ASSIGN_OR_RETURN(document.text, read_file(path));
    document.paragraphs = split_paragraphs(document.text);
    digest += document.source + "/" + document.name + ":" + sha256_hex(document.text) + "\n";
    if (!document.is_code) {
      count_words(document.text, counts);
    }
    if (!document.paragraphs.empty()) {
      corpus.documents.push_back(std::move(document));
    }
  }
  for (const auto& [word, count] : counts) {
    if (count >= kMinWordCount) {
      corpus.words.push_back(word);
    }
  }
  if (corpus.documents.size() < 2 || corpus.words.size() < 200) {
    return invalid_argument(
        "{}: too little text for training prompts ({} documents, {} common words); at least 2 "
        "documents and 200 words that occur {} times are needed",
        dir.string(), corpus.documents.size(), corpus.words.size(), kMinWordCount);
  }
  corpus.hash = sha256_hex(digest);
  return corpus;
}

}  // namespace kvlab
