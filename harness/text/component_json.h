// What the parts of tokenizer.json (normalizer, pre_tokenizer, decoder, post_processor) share:
// a kind named in "type", sequences of them, and patterns that are a literal or an expression.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>
#include <string_view>
#include <variant>

#include "harness/base/json.h"
#include "harness/text/regex.h"

namespace kvlab {

// Calls `visit(kind, part, where)` for `component` or, where it is a Sequence, for each part in
// order, to any depth that makes sense. `list_key` is what the file calls a Sequence's parts.
absl::Status for_each_part(
    const Json& component, const std::string& list_key, std::string_view where,
    const std::function<absl::Status(const std::string& kind, const Json& part,
                                     std::string_view where)>& visit);

// The error for a kind that is not known.
absl::Status unknown_kind(std::string_view where, std::string_view kind, std::string_view known);

using Pattern = std::variant<std::string, Regex>;

// {"String": s} or {"Regex": r} below `key`.
absl::StatusOr<Pattern> read_pattern(const Json& part, const std::string& key,
                                     std::string_view where);

// A string that must be exactly one character.
absl::StatusOr<std::string> read_character(const Json& part, const std::string& key,
                                           std::string_view where);

// Metaspace, the same in pre-tokenizers and decoders.
struct Metaspace {
  enum class Prepend { kAlways, kFirst, kNever };
  std::string replacement;
  Prepend prepend = Prepend::kAlways;
  bool split = true;
};
absl::StatusOr<Metaspace> read_metaspace(const Json& part, std::string_view where);

}  // namespace kvlab
