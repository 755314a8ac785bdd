#include "benchmarks/longbench/metrics/rouge_l.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/longbench/metrics/lcs_bits.h"
#include "harness/text/python_text.h"

namespace kvlab {
namespace {

using Sentence = std::vector<uint32_t>;  // word ids

// Words to ids, equal words to equal ids.
class Vocabulary {
 public:
  uint32_t id(std::u32string_view word) {
    return ids_.try_emplace(word, static_cast<uint32_t>(ids_.size())).first->second;
  }

 private:
  std::map<std::u32string_view, uint32_t> ids_;
};

std::vector<Sentence> sentences_of(std::u32string_view text, Vocabulary& vocabulary) {
  std::vector<Sentence> sentences;
  for (const std::u32string_view part : split_at(text, U'.')) {
    if (part.empty()) {
      continue;
    }
    Sentence& sentence = sentences.emplace_back();
    for (const std::u32string_view word : split_white_space(part)) {
      sentence.push_back(vocabulary.id(word));
    }
    if (sentence.empty()) {
      sentence.push_back(vocabulary.id(U""));  // "".split(" ") is one empty word
    }
  }
  return sentences;
}

std::set<uint32_t> distinct_words(const std::vector<Sentence>& sentences) {
  std::set<uint32_t> words;
  for (const Sentence& sentence : sentences) {
    words.insert(sentence.begin(), sentence.end());
  }
  return words;
}

// Adds the words on one longest common subsequence of `x` and `y` to `words`; false if the walk
// needs more than `max_frames` nested calls.
bool add_common_words(const Sentence& x, const Sentence& y, int64_t max_frames,
                      std::set<uint32_t>& words) {
  std::map<uint32_t, std::vector<uint32_t>> positions;  // of each word in y
  for (size_t j = 0; j < y.size(); ++j) {
    positions[y[j]].push_back(static_cast<uint32_t>(j));
  }
  // Every step of the walk lowers i or j, so rows further from the end than the limit are not met.
  const size_t first_row = max_frames > 0 && x.size() > static_cast<size_t>(max_frames)
                               ? x.size() - static_cast<size_t>(max_frames)
                               : 0;
  std::vector<LcsRow> rows;  // rows[i - first_row - 1] is row i
  rows.reserve(x.size() - first_row);
  LcsRow row(y.size());
  for (size_t i = 1; i <= x.size(); ++i) {
    const auto it = positions.find(x[i - 1]);
    if (it != positions.end()) {
      row.advance(it->second);
    }
    if (i > first_row) {
      rows.push_back(row);
    }
  }
  size_t i = x.size();
  size_t j = y.size();
  for (int64_t frames = 1;; ++frames) {
    if (max_frames > 0 && frames > max_frames) {
      return false;
    }
    if (i == 0 || j == 0) {
      return true;
    }
    if (x[i - 1] == y[j - 1]) {
      words.insert(x[i - 1]);
      --i;
      --j;
    } else if (rows[i - first_row - 1].rises_at(j)) {
      --i;  // t[i-1][j] > t[i][j-1]: where the elements differ, exactly where row i rises
    } else {
      --j;
    }
  }
}

}  // namespace

double rouge_l(std::u32string_view reply, std::u32string_view reference, int64_t max_walk_frames) {
  Vocabulary vocabulary;
  const std::vector<Sentence> reply_sentences = sentences_of(reply, vocabulary);
  const std::vector<Sentence> reference_sentences = sentences_of(reference, vocabulary);
  if (reply_sentences.empty() || reference_sentences.empty()) {
    return 0;
  }
  std::set<uint32_t> common;
  for (const Sentence& reference_sentence : reference_sentences) {
    for (const Sentence& reply_sentence : reply_sentences) {
      if (!add_common_words(reference_sentence, reply_sentence, max_walk_frames, common)) {
        return 0;
      }
    }
  }
  const auto overlap = static_cast<double>(common.size());
  const double recall = overlap / static_cast<double>(distinct_words(reference_sentences).size());
  const double precision = overlap / static_cast<double>(distinct_words(reply_sentences).size());
  return 2.0 * ((precision * recall) / (precision + recall + 1e-8));
}

int64_t rouge_walk_frames(int64_t recursion_limit, bool chinese) {
  if (recursion_limit == 0) {
    return 0;
  }
  return std::max<int64_t>(1, recursion_limit - (chinese ? 10 : 9));
}

}  // namespace kvlab
