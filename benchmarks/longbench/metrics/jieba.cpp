#include "benchmarks/longbench/metrics/jieba.h"

#include <absl/container/flat_hash_map.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/text/python_text.h"
#include "harness/text/utf8.h"

namespace kvlab {

// jieba's prefix dictionary as a trie: a node for every word and every beginning of one.
class Jieba::Dictionary final {
 public:
  static absl::StatusOr<std::unique_ptr<const Dictionary>> parse(std::string_view text,
                                                                 std::string_view origin);

  struct Node {
    int64_t frequency = 0;  // 0: a beginning only, or a word listed with 0
    double log_frequency = 0;
  };

  static constexpr uint32_t kRoot = 0;

  // The node of the text of `node` plus `c`, if any word begins so.
  std::optional<uint32_t> child(uint32_t node, char32_t c) const {
    const auto it = children_.find(edge(node, c));
    return it == children_.end() ? std::nullopt : std::optional<uint32_t>(it->second);
  }

  const Node& node(uint32_t index) const { return nodes_[index]; }
  double log_total() const { return log_total_; }

  bool is_word(std::u32string_view text) const {
    uint32_t at = kRoot;
    for (const char32_t c : text) {
      const std::optional<uint32_t> next = child(at, c);
      if (!next) {
        return false;
      }
      at = *next;
    }
    return nodes_[at].frequency != 0;
  }

 private:
  static uint64_t edge(uint32_t node, char32_t c) { return (uint64_t{node} << 32U) | c; }

  std::vector<Node> nodes_{1};
  absl::flat_hash_map<uint64_t, uint32_t> children_;
  double log_total_ = 0;
};

absl::StatusOr<std::unique_ptr<const Jieba::Dictionary>> Jieba::Dictionary::parse(
    std::string_view text, std::string_view origin) {
  auto dictionary = std::make_unique<Dictionary>();
  dictionary->children_.reserve(1U << 19U);
  int64_t total = 0;
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    const auto bad_line = [&] {
      return data_loss("{}, line {}: not \"word frequency kind\": run scripts/fetch_jieba.py again",
                       origin, line_number);
    };
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || !is_valid_utf8(line)) {
      return bad_line();
    }
    const std::string_view rest = line.substr(space + 1);
    int64_t frequency = 0;
    const auto [number_end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), frequency);
    const bool ends_there = number_end == rest.data() + rest.size() || *number_end == ' ';
    if (error != std::errc() || !ends_there || frequency < 0) {
      return bad_line();
    }
    uint32_t at = kRoot;
    for (const char32_t c : to_code_points(line.substr(0, space))) {
      const auto [it, added] = dictionary->children_.try_emplace(
          edge(at, c), static_cast<uint32_t>(dictionary->nodes_.size()));
      if (added) {
        dictionary->nodes_.emplace_back();
      }
      at = it->second;
    }
    dictionary->nodes_[at].frequency = frequency;
    total += frequency;
  }
  if (total == 0) {
    return data_loss("{}: the dictionary is empty: run scripts/fetch_jieba.py again", origin);
  }
  for (Node& node : dictionary->nodes_) {
    // log(frequency or 1), as jieba's calc() takes it.
    node.log_frequency = std::log(static_cast<double>(node.frequency != 0 ? node.frequency : 1));
  }
  dictionary->log_total_ = std::log(static_cast<double>(total));
  return dictionary;
}

namespace {

// jieba's re_han: what may stand in a block that the dictionary is asked about.
bool is_block_character(char32_t c) {
  return is_jieba_han(c) || (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') ||
         (c >= U'0' && c <= U'9') || c == U'+' || c == U'#' || c == U'&' || c == U'.' ||
         c == U'_' || c == U'%' || c == U'-';
}

absl::StatusOr<std::string> read_data(const std::filesystem::path& path) {
  absl::StatusOr<std::string> text = read_file(path);
  if (!text.ok()) {
    return with_context(text.status(),
                        "jieba's data is missing (run scripts/setup, or scripts/fetch_jieba.py)");
  }
  return text;
}

}  // namespace

Jieba::Jieba(std::unique_ptr<const Dictionary> dictionary, JiebaHmm hmm)
    : dictionary_(std::move(dictionary)), hmm_(std::move(hmm)) {}

Jieba::~Jieba() = default;

absl::StatusOr<std::shared_ptr<const Jieba>> Jieba::load(const std::filesystem::path& dir) {
  const std::filesystem::path dictionary_path = dir / "dict.txt";
  const std::filesystem::path hmm_path = dir / "hmm.tsv";
  KVLAB_ASSIGN_OR_RETURN(const std::string dictionary_text, read_data(dictionary_path));
  KVLAB_ASSIGN_OR_RETURN(const std::string hmm_text, read_data(hmm_path));
  KVLAB_ASSIGN_OR_RETURN(auto dictionary,
                         Dictionary::parse(dictionary_text, dictionary_path.string()));
  KVLAB_ASSIGN_OR_RETURN(JiebaHmm hmm, JiebaHmm::parse(hmm_text, hmm_path.string()));
  return std::shared_ptr<const Jieba>(new Jieba(std::move(dictionary), std::move(hmm)));
}

absl::StatusOr<const Jieba*> Jieba::shared() {
  static const absl::StatusOr<std::shared_ptr<const Jieba>> jieba =
      Jieba::load(cache_dir() / "data" / "jieba");
  if (!jieba.ok()) {
    return jieba.status();
  }
  return jieba->get();
}

std::vector<std::u32string_view> Jieba::cut(std::u32string_view text) const {
  std::vector<std::u32string_view> words;
  for (size_t i = 0; i < text.size();) {
    if (is_block_character(text[i])) {
      size_t end = i;
      while (end < text.size() && is_block_character(text[end])) {
        ++end;
      }
      cut_block(text.substr(i, end - i), words);
      i = end;
    } else {
      // Every other character is a word of its own, except that "\r\n" stays together.
      const size_t length = text.substr(i, 2) == U"\r\n" ? 2 : 1;
      words.push_back(text.substr(i, length));
      i += length;
    }
  }
  return words;
}

// The most probable path through the dictionary's words in `block`; of equal ones the longer word.
void Jieba::cut_block(std::u32string_view block, std::vector<std::u32string_view>& words) const {
  const size_t n = block.size();
  std::vector<double> route(n + 1, 0.0);
  std::vector<size_t> word_end(n);
  for (size_t k = n; k-- > 0;) {
    bool found = false;
    const auto offer = [&](size_t end, double log_frequency) {
      const double value = log_frequency - dictionary_->log_total() + route[end];
      if (!found || value >= route[k]) {
        route[k] = value;
        word_end[k] = end;
        found = true;
      }
    };
    std::optional<uint32_t> node = Dictionary::kRoot;
    for (size_t i = k; i < n; ++i) {
      node = dictionary_->child(*node, block[i]);
      if (!node) {
        break;
      }
      const Dictionary::Node& entry = dictionary_->node(*node);
      if (entry.frequency != 0) {
        offer(i + 1, entry.log_frequency);
      }
    }
    if (!found) {
      offer(k + 1, /*log_frequency=*/0);  // log 1
    }
  }
  size_t singles_begin = 0;
  size_t i = 0;
  const auto flush_singles = [&] {
    if (i > singles_begin) {
      cut_singles(block.substr(singles_begin, i - singles_begin), words);
    }
  };
  while (i < n) {
    const size_t end = word_end[i];
    if (end - i > 1) {
      flush_singles();
      words.push_back(block.substr(i, end - i));
      singles_begin = end;
    }
    i = end;
  }
  flush_singles();
}

void Jieba::cut_singles(std::u32string_view run, std::vector<std::u32string_view>& words) const {
  if (run.size() > 1 && !dictionary_->is_word(run)) {
    hmm_.cut(run, words);
    return;
  }
  for (size_t i = 0; i < run.size(); ++i) {
    words.push_back(run.substr(i, 1));
  }
}

}  // namespace kvlab
