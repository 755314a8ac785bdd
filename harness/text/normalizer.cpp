#include "harness/text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <variant>

#include "harness/text/character_class.h"
#include "harness/text/component_json.h"
#include "harness/text/utf8.h"

namespace kvlab {

class Normalizer::Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  virtual std::string apply(std::string text) const = 0;
};

namespace {

constexpr std::string_view kKnown =
    "NFC, NFD, NFKC, NFKD, Prepend, Replace, Strip, Lowercase, Sequence";

// Code points that are NFC by themselves and next to each other: no composition starts, ends or
// goes on with them. Most text needs no more than this look.
bool is_inert_in_nfc(char32_t c) {
  return c < 0x300 || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3001 && c <= 0x3029) ||
         (c >= 0x2010 && c <= 0x203F) || (c >= 0xFF01 && c <= 0xFF60);
}

class UnicodeForm final : public Normalizer::Step {
 public:
  UnicodeForm(int options, bool is_nfc) : options_(options), is_nfc_(is_nfc) {}

  std::string apply(std::string text) const override {
    const auto is_ascii = [](char c) { return static_cast<signed char>(c) >= 0; };
    if (std::all_of(text.begin(), text.end(), is_ascii)) {
      return text;
    }
    if (is_nfc_) {
      const std::u32string code_points = to_code_points(text);
      if (std::all_of(code_points.begin(), code_points.end(), is_inert_in_nfc)) {
        return text;
      }
    }
    utf8proc_uint8_t* mapped = nullptr;
    const utf8proc_ssize_t length =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                     static_cast<utf8proc_option_t>(options_));
    if (length >= 0) {  // it fails only on invalid UTF-8, which does not come here, or no memory
      text.assign(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
    }
    std::free(mapped);  // NOLINT: utf8proc allocates with malloc
    return text;
  }

 private:
  int options_;
  bool is_nfc_;
};

class Prepend final : public Normalizer::Step {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string text) const override {
    return text.empty() ? text : prefix_ + text;
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer::Step {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  std::string apply(std::string text) const override {
    return std::visit([&](const auto& pattern) { return replace_all(text, pattern, content_); },
                      pattern_);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Strip final : public Normalizer::Step {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string apply(std::string text) const override {
    std::u32string code_points = to_code_points(text);
    const auto keep = [](char32_t c) { return !is_white_space(c); };
    if (right_) {
      code_points.erase(std::find_if(code_points.rbegin(), code_points.rend(), keep).base(),
                        code_points.end());
    }
    if (left_) {
      code_points.erase(code_points.begin(),
                        std::find_if(code_points.begin(), code_points.end(), keep));
    }
    return to_utf8(code_points);
  }

 private:
  bool left_;
  bool right_;
};

class Lowercase final : public Normalizer::Step {
 public:
  std::string apply(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (const char32_t c : to_code_points(text)) {
      if (c == 0x130) {
        out += "i\u0307";  // the one lower case that is two code points
      } else {
        append_utf8(lower_case(c), out);
      }
    }
    return out;
  }
};

absl::StatusOr<std::unique_ptr<const Normalizer::Step>> make_step(const std::string& kind,
                                                                  const Json& part,
                                                                  std::string_view where) {
  constexpr int kCompose = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
  constexpr int kDecompose = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
  if (kind == "NFC") {
    return std::make_unique<UnicodeForm>(kCompose, true);
  }
  if (kind == "NFD") {
    return std::make_unique<UnicodeForm>(kDecompose, false);
  }
  if (kind == "NFKC") {
    return std::make_unique<UnicodeForm>(kCompose | UTF8PROC_COMPAT, false);
  }
  if (kind == "NFKD") {
    return std::make_unique<UnicodeForm>(kDecompose | UTF8PROC_COMPAT, false);
  }
  if (kind == "Prepend") {
    KVLAB_ASSIGN_OR_RETURN(std::string prefix, json_get<std::string>(part, "prepend", where));
    return std::make_unique<Prepend>(std::move(prefix));
  }
  if (kind == "Replace") {
    KVLAB_ASSIGN_OR_RETURN(Pattern pattern, read_pattern(part, "pattern", where));
    KVLAB_ASSIGN_OR_RETURN(std::string content, json_get<std::string>(part, "content", where));
    return std::make_unique<Replace>(std::move(pattern), std::move(content));
  }
  if (kind == "Strip") {
    KVLAB_ASSIGN_OR_RETURN(const bool left, json_get<bool>(part, "strip_left", where));
    KVLAB_ASSIGN_OR_RETURN(const bool right, json_get<bool>(part, "strip_right", where));
    return std::make_unique<Strip>(left, right);
  }
  if (kind == "Lowercase") {
    return std::make_unique<Lowercase>();
  }
  return unknown_kind(where, kind, kKnown);
}

}  // namespace

Normalizer::Normalizer() = default;
Normalizer::Normalizer(Normalizer&&) noexcept = default;
Normalizer& Normalizer::operator=(Normalizer&&) noexcept = default;
Normalizer::~Normalizer() = default;

absl::StatusOr<Normalizer> Normalizer::from_json(const Json& normalizer, std::string_view where) {
  Normalizer made;
  if (normalizer.is_null()) {
    return made;
  }
  KVLAB_RETURN_IF_ERROR(for_each_part(
      normalizer, "normalizers", where,
      [&](const std::string& kind, const Json& part, std::string_view part_where) -> absl::Status {
        KVLAB_ASSIGN_OR_RETURN(auto step, make_step(kind, part, part_where));
        made.steps_.push_back(std::move(step));
        return {};
      }));
  return made;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  for (const auto& step : steps_) {
    out = step->apply(std::move(out));
  }
  return out;
}

}  // namespace kvlab
