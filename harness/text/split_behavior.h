// What happens to the matches of a splitting pattern, by tokenizer.json's names.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace kvlab {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

inline constexpr std::string_view kSplitBehaviors =
    "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous";
std::optional<SplitBehavior> parse_split_behavior(std::string_view name);

// Bytes [begin, end) of a text, a match of the pattern or what lies between two.
struct Section {
  size_t begin;
  size_t end;
  bool is_match;
};

// Collects matches, given from left to right, into sections that cover the text.
class SectionBuilder {
 public:
  SectionBuilder(size_t text_size, bool invert) : size_(text_size), invert_(invert) {}

  void add_match(size_t begin, size_t end) {
    if (begin > done_) {
      sections_.push_back({done_, begin, invert_});
    }
    sections_.push_back({begin, end, !invert_});
    done_ = end;
  }
  std::vector<Section> finish() {
    if (done_ < size_) {
      sections_.push_back({done_, size_, invert_});
    }
    return std::move(sections_);
  }

 private:
  size_t size_;
  bool invert_;
  size_t done_ = 0;
  std::vector<Section> sections_;
};

// The parts of the text, in order; some may be empty.
std::vector<std::pair<size_t, size_t>> apply_behavior(std::vector<Section> sections,
                                                      SplitBehavior behavior);

}  // namespace kvlab
