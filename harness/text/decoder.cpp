#include "harness/text/decoder.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "harness/text/byte_level.h"
#include "harness/text/component_json.h"
#include "harness/text/utf8.h"

namespace kvlab {

class Decoder::Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  virtual std::vector<std::string> apply(std::vector<std::string> tokens) const = 0;
};

namespace {

using Tokens = std::vector<std::string>;

constexpr std::string_view kKnown =
    "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, Sequence";

std::string join(const Tokens& tokens, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    out.append(i == 0 ? "" : between).append(tokens[i]);
  }
  return out;
}

class ByteLevel final : public Decoder::Step {
 public:
  Tokens apply(Tokens tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      bytes += from_byte_level(token).value_or(token);  // added tokens stand for themselves
    }
    return {to_valid_utf8(bytes)};
  }
};

// "<0xE4>" as the byte it names.
std::optional<char> byte_of(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) {
    return std::nullopt;
  }
  unsigned value = 0;
  for (const char digit : token.substr(3, 2)) {
    const size_t at =
        std::string_view("0123456789abcdef")
            .find(digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit);
    if (at == std::string_view::npos) {
      return std::nullopt;
    }
    value = value * 16 + static_cast<unsigned>(at);
  }
  return static_cast<char>(value);
}

class ByteFallback final : public Decoder::Step {
 public:
  Tokens apply(Tokens tokens) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (is_valid_utf8(bytes)) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\uFFFD");  // one for each byte
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const std::optional<char> byte = byte_of(token)) {
        bytes.push_back(*byte);
        continue;
      }
      if (!bytes.empty()) {
        flush();
      }
      out.push_back(std::move(token));
    }
    if (!bytes.empty()) {
      flush();
    }
    return out;
  }
};

class Fuse final : public Decoder::Step {
 public:
  Tokens apply(Tokens tokens) const override { return {join(tokens, "")}; }
};

class MetaspaceStep final : public Decoder::Step {
 public:
  explicit MetaspaceStep(Metaspace metaspace) : metaspace_(std::move(metaspace)) {}
  Tokens apply(Tokens tokens) const override {
    const bool drops_first = metaspace_.prepend != Metaspace::Prepend::kNever;
    for (size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replace_all(tokens[i], metaspace_.replacement, i == 0 && drops_first ? "" : " ");
    }
    return tokens;
  }

 private:
  Metaspace metaspace_;
};

class Replace final : public Decoder::Step {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  Tokens apply(Tokens tokens) const override {
    for (std::string& token : tokens) {
      token = std::visit([&](const auto& pattern) { return replace_all(token, pattern, content_); },
                         pattern_);
    }
    return tokens;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

// Cuts up to `start` copies of a character off the front of every token, and `stop` off the end.
class Strip final : public Decoder::Step {
 public:
  Strip(std::string character, int64_t start, int64_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  Tokens apply(Tokens tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (int64_t i = 0; i < start_ && rest.starts_with(character_); ++i) {
        rest.remove_prefix(character_.size());
      }
      for (int64_t i = 0; i < stop_ && rest.ends_with(character_); ++i) {
        rest.remove_suffix(character_.size());
      }
      token = std::string(rest);
    }
    return tokens;
  }

 private:
  std::string character_;
  int64_t start_;
  int64_t stop_;
};

absl::StatusOr<std::unique_ptr<const Decoder::Step>> make_step(const std::string& kind,
                                                               const Json& part,
                                                               std::string_view where) {
  if (kind == "ByteLevel") {
    return std::make_unique<ByteLevel>();
  }
  if (kind == "ByteFallback") {
    return std::make_unique<ByteFallback>();
  }
  if (kind == "Fuse") {
    return std::make_unique<Fuse>();
  }
  if (kind == "Metaspace") {
    KVLAB_ASSIGN_OR_RETURN(Metaspace metaspace, read_metaspace(part, where));
    return std::make_unique<MetaspaceStep>(std::move(metaspace));
  }
  if (kind == "Replace") {
    KVLAB_ASSIGN_OR_RETURN(Pattern pattern, read_pattern(part, "pattern", where));
    KVLAB_ASSIGN_OR_RETURN(std::string content, json_get<std::string>(part, "content", where));
    return std::make_unique<Replace>(std::move(pattern), std::move(content));
  }
  if (kind == "Strip") {
    KVLAB_ASSIGN_OR_RETURN(std::string character, read_character(part, "content", where));
    KVLAB_ASSIGN_OR_RETURN(const auto start, json_get<int64_t>(part, "start", where));
    KVLAB_ASSIGN_OR_RETURN(const auto stop, json_get<int64_t>(part, "stop", where));
    return std::make_unique<Strip>(std::move(character), start, stop);
  }
  return unknown_kind(where, kind, kKnown);
}

}  // namespace

Decoder::Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

absl::StatusOr<Decoder> Decoder::from_json(const Json& decoder, std::string_view where) {
  Decoder made;
  if (decoder.is_null()) {
    made.joins_with_spaces_ = true;
    return made;
  }
  KVLAB_RETURN_IF_ERROR(for_each_part(
      decoder, "decoders", where,
      [&](const std::string& kind, const Json& part, std::string_view part_where) -> absl::Status {
        KVLAB_ASSIGN_OR_RETURN(auto step, make_step(kind, part, part_where));
        made.steps_.push_back(std::move(step));
        return {};
      }));
  return made;
}

std::string Decoder::decode(std::vector<std::string> tokens) const {
  for (const auto& step : steps_) {
    tokens = step->apply(std::move(tokens));
  }
  return join(tokens, joins_with_spaces_ ? " " : "");
}

}  // namespace kvlab
