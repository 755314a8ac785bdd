// Hugging Face tokenizer.json: text to token ids and back.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

// Immutable after load, safe to share between threads.
class Tokenizer {
 public:
  // Reads tokenizer.json in `model_dir` (and special token names from tokenizer_config.json where
  // present). A model type, normalizer, pre-tokenizer or decoder that is not known is an error
  // that names it.
  static absl::StatusOr<std::shared_ptr<const Tokenizer>> load(
      const std::filesystem::path& model_dir);

  virtual ~Tokenizer() = default;

  // Token ids of `text`; invalid UTF-8 is replaced by U+FFFD first. Added tokens are found in the
  // text as Hugging Face does. `add_special_tokens` applies the post-processor's template.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special_tokens) const = 0;

  // Number of ids of encode(text, false).
  virtual int64_t count(std::string_view text) const = 0;

  // Text of whole sequences; ids outside the vocabulary are skipped.
  virtual std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const = 0;

  virtual int32_t vocab_size() const = 0;  // largest id + 1, added tokens included
  virtual std::optional<int32_t> token_id(std::string_view token) const = 0;
  virtual bool is_special(int32_t id) const = 0;

  // Id that the post-processor puts in front, if any.
  virtual std::optional<int32_t> bos_id() const = 0;

  // SHA-256 of tokenizer.json.
  virtual const std::string& content_hash() const = 0;
};

}  // namespace kvlab
