#include "datasets/training/filler.h"

#include <algorithm>
#include <utility>

namespace kvlab {
namespace {

const TrainingDocument& pick_document(const TrainingCorpus& corpus, SeededRandom& random,
                                      bool code) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const TrainingDocument& document = random.pick(corpus.documents);
    if (document.is_code == code) {
      return document;
    }
  }
  return corpus.documents.front();  // no document of this kind
}

}  // namespace

std::vector<std::string> document_filler(const TrainingCorpus& corpus, SeededRandom& random,
                                         const TokenCounter& count, int64_t tokens) {
  std::vector<std::string> pieces;
  int64_t have = 0;
  while (have < tokens) {
    const TrainingDocument& document = pick_document(corpus, random, random.chance(0.1));
    size_t i = static_cast<size_t>(random.below(static_cast<int64_t>(document.paragraphs.size())));
    for (; i < document.paragraphs.size() && have < tokens; ++i) {
      pieces.push_back(document.paragraphs[i]);
      have += count(pieces.back()) + 1;
    }
  }
  return pieces;
}

std::vector<std::string> repeated_filler(const TrainingCorpus& corpus, SeededRandom& random,
                                         const TokenCounter& count, int64_t tokens) {
  std::string line;
  const int64_t sentences = random.between(2, 6);
  for (int64_t i = 0; i < sentences; ++i) {
    line += (line.empty() ? "" : " ") + random_sentence(corpus, random);
  }
  const int64_t each = count(line) + 1;
  return std::vector<std::string>(static_cast<size_t>(std::max<int64_t>(1, tokens / each)), line);
}

std::string document_run(const TrainingCorpus& corpus, SeededRandom& random,
                         const TokenCounter& count, int64_t tokens, bool code) {
  const TrainingDocument& document = pick_document(corpus, random, code);
  std::string text;
  int64_t have = 0;
  for (size_t i = static_cast<size_t>(random.below(
           std::max<int64_t>(1, static_cast<int64_t>(document.paragraphs.size()) / 2)));
       i < document.paragraphs.size() && have < tokens; ++i) {
    text += (text.empty() ? "" : "\n\n") + document.paragraphs[i];
    have += count(document.paragraphs[i]) + 1;
  }
  return text;
}

std::string random_sentence(const TrainingCorpus& corpus, SeededRandom& random) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    std::string text = random.pick(pick_document(corpus, random, false).paragraphs);
    std::replace(text.begin(), text.end(), '\n', ' ');
    const size_t begin =
        text.find(". ", static_cast<size_t>(random.below(static_cast<int64_t>(text.size()))));
    if (begin == std::string::npos) {
      continue;
    }
    const size_t end = text.find(". ", begin + 2);
    if (end == std::string::npos || end - begin > 240 || end - begin < 40) {
      continue;
    }
    std::string sentence = text.substr(begin + 2, end - begin - 1);
    sentence.erase(0, sentence.find_first_not_of(' '));
    if (!sentence.empty() && sentence[0] >= 'A' && sentence[0] <= 'Z') {
      return sentence;
    }
  }
  return "The text goes on without anything that matters here.";
}

std::string join_with_inserts(std::vector<std::string> pieces, std::vector<std::string> inserts,
                              SeededRandom& random, std::string_view separator) {
  // Inserting from the back keeps the places that were drawn.
  std::vector<std::pair<int64_t, std::string>> places;
  for (std::string& insert : inserts) {
    places.emplace_back(random.between(0, static_cast<int64_t>(pieces.size())), std::move(insert));
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [place, insert] : places) {
    pieces.insert(pieces.begin() + place, std::move(insert));
  }
  std::string text;
  for (const std::string& piece : pieces) {
    text += text.empty() ? "" : separator;
    text += piece;
  }
  return text;
}

}  // namespace kvlab
