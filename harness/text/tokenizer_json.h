// The parts of one tokenizer.json, read and checked.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>

#include "harness/text/added_tokens.h"
#include "harness/text/bpe.h"
#include "harness/text/decoder.h"
#include "harness/text/normalizer.h"
#include "harness/text/post_processor.h"
#include "harness/text/pre_tokenizer.h"
#include "harness/text/tokenizer.h"

namespace kvlab {

struct TokenizerParts {
  std::unique_ptr<const Bpe> model;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedTokens added_tokens;
  PostProcessor post_processor;
  Decoder decoder;
  std::string content_hash;  // SHA-256 of the file

  // `origin` starts every message.
  static absl::StatusOr<TokenizerParts> from_json(std::string_view text, std::string_view origin);
};

// A tokenizer from the text of a tokenizer.json alone.
absl::StatusOr<std::shared_ptr<const Tokenizer>> tokenizer_from_json(std::string_view text,
                                                                     std::string_view origin);

}  // namespace kvlab
