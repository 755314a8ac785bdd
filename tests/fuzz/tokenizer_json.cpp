// Any bytes as tokenizer.json: an error, or a tokenizer that encodes and decodes.
#include "harness/text/tokenizer_json.h"

#include <cstdint>
#include <string_view>

#include "harness/base/check.h"
#include "harness/text/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = kvlab::tokenizer_from_json(text, "tokenizer.json");
  if (!tokenizer.ok()) {
    KVLAB_CHECK(!kvlab::message_of(tokenizer.status()).empty());
    return 0;
  }
  const auto ids = (*tokenizer)->encode("The cat's 12 \u00e9\u4e2d\n\n  \u2581x<s>", true);
  KVLAB_CHECK((*tokenizer)->count("a b") ==
              static_cast<int64_t>((*tokenizer)->encode("a b", false).size()));
  KVLAB_CHECK(kvlab::is_valid_utf8((*tokenizer)->decode(ids, false)));
  return 0;
}
