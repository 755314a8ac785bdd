// The regular expressions of tokenizer.json files: written for Oniguruma (Ruby syntax, Unicode),
// run by PCRE2 (UTF, UCP, JIT).
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "harness/text/replace.h"

namespace kvlab {

// The same pattern for PCRE2. What the two engines read differently is rewritten (\s, \S, \uHHHH,
// (?m)) or, where that is not possible, an error that names it (\w, \b, \h, set operations inside
// a class, {n,m}+).
absl::StatusOr<std::string> translate_oniguruma(std::string_view pattern);

// Immutable, safe to share between threads.
class Regex {
 public:
  static absl::StatusOr<Regex> compile(std::string_view pattern);

  // Matches from left to right, not overlapping, in bytes of `text` (valid UTF-8). An empty match
  // right after another match is left out. A pattern that runs into PCRE2's limits stops matching
  // there.
  void for_each_match(std::string_view text,
                      const std::function<void(size_t begin, size_t end)>& visit) const;

 private:
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  std::shared_ptr<const Code> code_;
};

// `text` with every match replaced by `content`; replace.h has the same for literals.
std::string replace_all(std::string_view text, const Regex& regex, std::string_view content);

}  // namespace kvlab
