// A tokenizer that needs no files: four bytes are one token. For tests of what does not depend on
// real token counts.
#pragma once

#include <string>
#include <vector>

#include "harness/text/tokenizer.h"

namespace kvlab {

class ByteTokenizer final : public Tokenizer {
 public:
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const override {
    (void)add_special_tokens;
    return std::vector<int32_t>(static_cast<size_t>(count(text)), 0);
  }
  int64_t count(std::string_view text) const override {
    ++counts;
    return static_cast<int64_t>((text.size() + 3) / 4);
  }
  std::string decode(std::span<const int32_t>, bool) const override { return {}; }
  int32_t vocab_size() const override { return 1; }
  std::optional<int32_t> token_id(std::string_view) const override { return std::nullopt; }
  bool is_special(int32_t) const override { return false; }
  std::optional<int32_t> bos_id() const override { return std::nullopt; }
  const std::string& content_hash() const override { return hash; }

  std::string hash = "four-bytes";
  mutable int64_t counts = 0;
};

}  // namespace kvlab
