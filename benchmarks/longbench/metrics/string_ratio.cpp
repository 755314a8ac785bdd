#include "benchmarks/longbench/metrics/string_ratio.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "benchmarks/longbench/metrics/lcs_bits.h"

namespace kvlab {
namespace {

using Positions = std::unordered_map<char32_t, std::vector<uint32_t>>;

Positions positions_in(std::u32string_view text) {
  Positions positions;
  for (size_t i = 0; i < text.size(); ++i) {
    positions[text[i]].push_back(static_cast<uint32_t>(i));
  }
  return positions;
}

struct Block {
  size_t a;
  size_t b;
  size_t size;
};

struct Area {
  size_t a_begin;
  size_t a_end;
  size_t b_begin;
  size_t b_end;
};

class SequenceMatcher {
 public:
  SequenceMatcher(std::u32string_view a, std::u32string_view b)
      : a_(a), b_(b), positions_(positions_in(b)), run_(b.size() + 1), next_run_(b.size() + 1) {
    constexpr size_t kAutojunkLength = 200;
    if (b.size() >= kAutojunkLength) {
      const size_t popular = b.size() / 100 + 1;
      std::erase_if(positions_, [&](const auto& entry) { return entry.second.size() > popular; });
    }
  }

  // Characters in matching blocks: the longest match, then left and right of it, and so on.
  size_t matched() {
    size_t total = 0;
    std::vector<Area> areas = {{0, a_.size(), 0, b_.size()}};
    while (!areas.empty()) {
      const Area area = areas.back();
      areas.pop_back();
      const Block block = longest_match(area);
      if (block.size == 0) {
        continue;
      }
      total += block.size;
      if (area.a_begin < block.a && area.b_begin < block.b) {
        areas.push_back({area.a_begin, block.a, area.b_begin, block.b});
      }
      if (block.a + block.size < area.a_end && block.b + block.size < area.b_end) {
        areas.push_back({block.a + block.size, area.a_end, block.b + block.size, area.b_end});
      }
    }
    return total;
  }

 private:
  Block longest_match(const Area& area) {
    Block best = {area.a_begin, area.b_begin, 0};
    // run_[j + 1]: length of the match that ends at a[i - 1] and b[j]; zero outside `touched`.
    std::vector<uint32_t> touched;
    std::vector<uint32_t> next_touched;
    for (size_t i = area.a_begin; i < area.a_end; ++i) {
      const auto it = positions_.find(a_[i]);
      if (it != positions_.end()) {
        const std::vector<uint32_t>& all = it->second;
        for (auto position = std::lower_bound(all.begin(), all.end(), area.b_begin);
             position != all.end() && *position < area.b_end; ++position) {
          const uint32_t j = *position;
          const uint32_t size = run_[j] + 1;
          next_run_[j + 1] = size;
          next_touched.push_back(j + 1);
          if (size > best.size) {
            best = {i + 1 - size, j + 1 - size, size};
          }
        }
      }
      for (const uint32_t at : touched) {
        run_[at] = 0;
      }
      touched.clear();
      std::swap(run_, next_run_);
      std::swap(touched, next_touched);
    }
    for (const uint32_t at : touched) {
      run_[at] = 0;
    }
    // Characters that start no match may still lengthen one.
    while (best.a > area.a_begin && best.b > area.b_begin && a_[best.a - 1] == b_[best.b - 1]) {
      --best.a;
      --best.b;
      ++best.size;
    }
    while (best.a + best.size < area.a_end && best.b + best.size < area.b_end &&
           a_[best.a + best.size] == b_[best.b + best.size]) {
      ++best.size;
    }
    return best;
  }

  std::u32string_view a_;
  std::u32string_view b_;
  Positions positions_;
  std::vector<uint32_t> run_;
  std::vector<uint32_t> next_run_;
};

}  // namespace

double difflib_ratio(std::u32string_view a, std::u32string_view b) {
  if (a.empty() && b.empty()) {
    return 1;
  }
  const size_t matched = SequenceMatcher(a, b).matched();
  return 2.0 * static_cast<double>(matched) / static_cast<double>(a.size() + b.size());
}

double levenshtein_ratio(std::u32string_view a, std::u32string_view b) {
  const size_t both = a.size() + b.size();
  if (both == 0) {
    return 1;
  }
  const Positions positions = positions_in(b);
  LcsRow row(b.size());
  for (const char32_t c : a) {
    const auto it = positions.find(c);
    if (it != positions.end()) {
      row.advance(it->second);
    }
  }
  const size_t distance = both - 2 * row.length();
  return 1.0 - static_cast<double>(distance) / static_cast<double>(both);
}

}  // namespace kvlab
