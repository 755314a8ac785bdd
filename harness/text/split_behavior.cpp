#include "harness/text/split_behavior.h"

#include <algorithm>

namespace kvlab {

std::optional<SplitBehavior> parse_split_behavior(std::string_view name) {
  if (name == "Removed") {
    return SplitBehavior::kRemoved;
  }
  if (name == "Isolated") {
    return SplitBehavior::kIsolated;
  }
  if (name == "MergedWithPrevious") {
    return SplitBehavior::kMergedWithPrevious;
  }
  if (name == "MergedWithNext") {
    return SplitBehavior::kMergedWithNext;
  }
  if (name == "Contiguous") {
    return SplitBehavior::kContiguous;
  }
  return std::nullopt;
}

std::vector<std::pair<size_t, size_t>> apply_behavior(std::vector<Section> sections,
                                                      SplitBehavior behavior) {
  std::vector<std::pair<size_t, size_t>> parts;
  parts.reserve(sections.size());
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) {
    std::reverse(sections.begin(), sections.end());
  }
  // Whether a section joins the part before it (in the direction of the walk).
  const auto joins = [&](const Section& section, bool previous_is_match) {
    switch (behavior) {
      case SplitBehavior::kContiguous:
        return section.is_match == previous_is_match;
      case SplitBehavior::kMergedWithPrevious:
      case SplitBehavior::kMergedWithNext:
        return section.is_match && !previous_is_match;
      default:
        return false;
    }
  };
  bool previous_is_match = false;
  for (const Section& section : sections) {
    if (behavior == SplitBehavior::kRemoved && section.is_match) {
      continue;
    }
    if (!parts.empty() && joins(section, previous_is_match)) {
      parts.back().first = std::min(parts.back().first, section.begin);
      parts.back().second = std::max(parts.back().second, section.end);
    } else {
      parts.emplace_back(section.begin, section.end);
    }
    previous_is_match = section.is_match;
  }
  if (backwards) {
    std::reverse(parts.begin(), parts.end());
  }
  return parts;
}

}  // namespace kvlab
