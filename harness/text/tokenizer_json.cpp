#include "harness/text/tokenizer_json.h"

#include "harness/base/sha256.h"

namespace kvlab {
namespace {

// The value of `key`, null where it is missing.
const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto it = object.find(key);
  return it == object.end() ? kNull : *it;
}

}  // namespace

absl::StatusOr<TokenizerParts> TokenizerParts::from_json(std::string_view text,
                                                         std::string_view origin) {
  // Checking hundreds of thousands of vocabulary keys for duplicates would triple the time.
  JsonOptions options;
  options.refuse_duplicate_keys = false;
  KVLAB_ASSIGN_OR_RETURN(const Json file, parse_json(text, origin, options));
  const auto where = [&](std::string_view part) { return fmt::format("{}: {}", origin, part); };
  if (!file.is_object() || !member(file, "model").is_object()) {
    return invalid_argument("{}: should be an object with a model in it", origin);
  }
  const Json& model = member(file, "model");
  // Files from before 2020 leave the type out.
  KVLAB_ASSIGN_OR_RETURN(const std::string type,
                         json_get_or<std::string>(model, "type", "BPE", where("model")));
  if (type != "BPE") {
    return unimplemented("{}: the kind {} is not supported (supported: BPE)", where("model"), type);
  }
  TokenizerParts parts;
  parts.content_hash = sha256_hex(text);
  KVLAB_ASSIGN_OR_RETURN(parts.model, Bpe::from_json(model, where("model")));
  KVLAB_ASSIGN_OR_RETURN(parts.normalizer,
                         Normalizer::from_json(member(file, "normalizer"), where("normalizer")));
  KVLAB_ASSIGN_OR_RETURN(parts.pre_tokenizer, PreTokenizer::from_json(member(file, "pre_tokenizer"),
                                                                      where("pre_tokenizer")));
  KVLAB_ASSIGN_OR_RETURN(parts.added_tokens,
                         AddedTokens::from_json(member(file, "added_tokens"), where("added_tokens"),
                                                *parts.model, parts.normalizer));
  KVLAB_ASSIGN_OR_RETURN(
      parts.post_processor,
      PostProcessor::from_json(member(file, "post_processor"), where("post_processor")));
  KVLAB_ASSIGN_OR_RETURN(parts.decoder,
                         Decoder::from_json(member(file, "decoder"), where("decoder")));
  return parts;
}

}  // namespace kvlab
