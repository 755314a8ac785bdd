// jieba's hidden Markov model for words that are not in its dictionary: each character begins (B),
// continues (M) or ends (E) a word, or is one by itself (S).
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

class JiebaHmm final {
 public:
  // `text` is hmm.tsv: lines "start STATE LOGP", "trans STATE STATE LOGP", "emit STATE CHARACTER
  // LOGP", separated by tabs. Errors name `origin` and the line.
  static absl::StatusOr<JiebaHmm> parse(std::string_view text, std::string_view origin);

  // Appends the words of `run`, which may hold Han characters and ASCII (finalseg.cut).
  void cut(std::u32string_view run, std::vector<std::u32string_view>& words) const;

 private:
  static constexpr size_t kStates = 4;  // B, E, M, S: in the order that breaks ties

  void cut_han(std::u32string_view run, std::vector<std::u32string_view>& words) const;

  std::array<double, kStates> start_{};
  std::array<std::array<double, kStates>, kStates> transition_{};
  std::array<absl::flat_hash_map<char32_t, double>, kStates> emission_;
};

// [\u4E00-\u9FD5], jieba's idea of a Han character.
inline bool is_jieba_han(char32_t c) { return c >= 0x4E00 && c <= 0x9FD5; }

}  // namespace kvlab
