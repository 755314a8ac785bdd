// tokenizer.json's decoder: from tokens back to text.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// Immutable, safe to share between threads. Knows ByteLevel, ByteFallback, Fuse, Metaspace,
// Replace, Strip and sequences of them; null puts spaces between tokens.
class Decoder {
 public:
  class Step;

  static absl::StatusOr<Decoder> from_json(const Json& decoder, std::string_view where);

  Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  // The text of a whole sequence. Bytes that make no UTF-8 become U+FFFD.
  std::string decode(std::vector<std::string> tokens) const;

 private:
  std::vector<std::unique_ptr<const Step>> steps_;
  bool joins_with_spaces_ = false;
};

}  // namespace kvlab
