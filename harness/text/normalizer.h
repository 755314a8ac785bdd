// tokenizer.json's normalizer: what happens to a text before it is cut.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// Immutable, safe to share between threads. Knows NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip,
// Lowercase and sequences of them; null is the identity.
class Normalizer {
 public:
  class Step;

  static absl::StatusOr<Normalizer> from_json(const Json& normalizer, std::string_view where);

  Normalizer();
  Normalizer(Normalizer&&) noexcept;
  Normalizer& operator=(Normalizer&&) noexcept;
  ~Normalizer();

  bool is_identity() const { return steps_.empty(); }

  // `text` is valid UTF-8.
  std::string apply(std::string_view text) const;

 private:
  std::vector<std::unique_ptr<const Step>> steps_;
};

}  // namespace kvlab
