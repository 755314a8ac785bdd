// Ids of words seen before. Bounded: when full it starts over. For one thread at a time.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "harness/base/strings.h"

namespace kvlab {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 256;  // longer words are not kept
  static constexpr size_t kMaxWords = size_t{1} << 17U;
  static constexpr size_t kMaxBytes = size_t{8} << 20U;  // of words
  static constexpr size_t kMaxIds = size_t{1} << 20U;

  std::optional<std::span<const int32_t>> find(std::string_view word) const {
    const auto it = entries_.find(to_absl(word));
    if (it == entries_.end()) {
      return std::nullopt;
    }
    return std::span(ids_).subspan(it->second.first, it->second.count);
  }

  void insert(std::string_view word, std::span<const int32_t> ids) {
    if (word.size() > kMaxWordBytes) {
      return;
    }
    if (entries_.size() >= kMaxWords || used_ + word.size() > kMaxBytes ||
        ids_.size() + ids.size() > kMaxIds) {
      entries_.clear();
      ids_.clear();
      used_ = 0;
    }
    if (!bytes_) {
      bytes_ = std::make_unique_for_overwrite<char[]>(kMaxBytes);
    }
    std::memcpy(bytes_.get() + used_, word.data(), word.size());
    const std::string_view kept(bytes_.get() + used_, word.size());
    used_ += word.size();
    entries_.emplace(to_absl(kept),
                     Entry{static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(ids.size())});
    ids_.insert(ids_.end(), ids.begin(), ids.end());
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint32_t first;
    uint32_t count;
  };
  absl::flat_hash_map<absl::string_view, Entry> entries_;  // keys point into bytes_
  std::unique_ptr<char[]> bytes_;
  size_t used_ = 0;
  std::vector<int32_t> ids_;
};

}  // namespace kvlab
