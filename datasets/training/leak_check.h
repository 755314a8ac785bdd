// Proof that training prompts and benchmark texts share no passage: word 13-grams, the length
// GPT-3's report used for the same purpose (Brown et al. 2020, appendix C).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace kvlab {

class NgramIndex final {
 public:
  static constexpr size_t kWords = 13;

  // Words are runs of letters and digits, lower-cased; everything else separates.
  void add(std::string_view text);

  // Every string in every JSON or JSON-lines file, and every text file (NAME.txt, or a name without
  // an ending such as LGPL-2.1), below `path`.
  absl::Status add_files(const std::filesystem::path& path);

  // The first 13 words of `text` that also stand in an indexed text.
  std::optional<std::string> first_shared(std::string_view text) const;

  size_t size() const { return hashes_.size(); }

 private:
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace kvlab
