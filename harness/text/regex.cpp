#define PCRE2_CODE_UNIT_WIDTH 8
#include "harness/text/regex.h"

#include <pcre2.h>

#include <algorithm>
#include <array>

#include "harness/base/check.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

// Unicode's White_Space, which is what \s means to Oniguruma. PCRE2's \s has U+180E besides.
constexpr std::string_view kSpaceSet = R"(\p{Z}\t-\r\x{85})";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  absl::StatusOr<std::string> run() {
    while (pos_ < in_.size()) {
      const char c = in_[pos_];
      absl::Status status;
      if (c == '\\') {
        status = escape();
      } else if (c == '[') {
        status = character_class();
      } else if (c == '(' && in_.substr(pos_).starts_with("(?")) {
        group();
      } else if (c == '(' && in_.substr(pos_).starts_with("(*")) {
        status = refuse("(*...)");
      } else if (c == '{') {
        status = quantifier();
      } else {
        copy(1);
      }
      KVLAB_RETURN_IF_ERROR(status);
    }
    return std::move(out_);
  }

 private:
  static absl::Status refuse(std::string_view what) {
    return unimplemented("regular expressions with {} are not supported", what);
  }

  void copy(size_t count) {
    count = std::min(count, in_.size() - pos_);
    out_.append(in_.substr(pos_, count));
    pos_ += count;
  }

  // An escape that reads the same inside and outside a class.
  absl::Status common_escape() {
    const char c = in_[pos_ + 1];
    if (std::string_view("wWbBhHCK").find(c) != std::string_view::npos) {
      return refuse(fmt::format("\\{}", c));
    }
    if (c == 'u') {
      const std::string_view digits = in_.substr(std::min(pos_ + 2, in_.size()), 4);
      if (digits.size() != 4 ||
          digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
        return refuse("\\u without four hexadecimal digits");
      }
      out_ += fmt::format("\\x{{{}}}", digits);
      pos_ += 6;
      return {};
    }
    copy(2);
    return {};
  }

  absl::Status escape() {
    const char c = pos_ + 1 < in_.size() ? in_[pos_ + 1] : '\0';
    if (c == 's' || c == 'S') {
      out_ += fmt::format("[{}{}]", c == 'S' ? "^" : "", kSpaceSet);
      pos_ += 2;
      return {};
    }
    if (c == '\0') {
      copy(1);
      return {};
    }
    return common_escape();
  }

  absl::Status character_class() {
    copy(1);
    if (pos_ < in_.size() && in_[pos_] == '^') {
      copy(1);
    }
    if (pos_ < in_.size() && in_[pos_] == ']') {
      copy(1);
    }
    while (pos_ < in_.size() && in_[pos_] != ']') {
      const std::string_view rest = in_.substr(pos_);
      if (rest.starts_with("\\s")) {
        out_ += kSpaceSet;
        pos_ += 2;
      } else if (rest.starts_with("\\S")) {
        return refuse("\\S inside a character class");
      } else if (rest.starts_with("\\") && rest.size() > 1) {
        KVLAB_RETURN_IF_ERROR(common_escape());
      } else if (rest.starts_with("[:")) {
        const size_t end = rest.find(":]");
        if (end == std::string_view::npos) {
          return refuse("a nested character class");
        }
        copy(end + 2);
      } else if (rest.starts_with("[")) {
        return refuse("a nested character class");
      } else if (rest.starts_with("&&")) {
        return refuse("&& inside a character class");
      } else {
        copy(1);
      }
    }
    copy(1);
    return {};
  }

  // (?imx-imx) and (?imx-imx:...): m lets the dot match newlines, which is s to PCRE2.
  void group() {
    copy(2);
    const size_t end = in_.find_first_not_of("imx-", pos_);
    if (end == std::string_view::npos || (in_[end] != ':' && in_[end] != ')')) {
      return;
    }
    for (; pos_ < end; ++pos_) {
      out_ += in_[pos_] == 'm' ? 's' : in_[pos_];
    }
  }

  absl::Status quantifier() {
    const size_t end = in_.find_first_not_of("0123456789,", pos_ + 1);
    if (end == std::string_view::npos || in_[end] != '}' || end == pos_ + 1) {
      copy(1);
      return {};
    }
    if (in_[pos_ + 1] == ',') {
      return refuse("the quantifier {,n}");
    }
    if (end + 1 < in_.size() && in_[end + 1] == '+') {
      return refuse("the quantifier {n,m}+");
    }
    copy(end + 1 - pos_);
    return {};
  }

  std::string_view in_;
  size_t pos_ = 0;
  std::string out_;
};

// Match data and JIT stack of one thread. One pair of offsets is enough: groups are never asked
// for.
struct MatchScratch {
  MatchScratch()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(size_t{32} << 10U, size_t{64} << 20U, nullptr)) {
    KVLAB_CHECK(data != nullptr && context != nullptr);
    pcre2_jit_stack_assign(context, nullptr, stack);
  }
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;
  ~MatchScratch() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

size_t utf8_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

struct Regex::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }
  pcre2_code* code;
};

absl::StatusOr<std::string> translate_oniguruma(std::string_view pattern) {
  return Translator(pattern).run();
}

absl::StatusOr<Regex> Regex::compile(std::string_view pattern) {
  KVLAB_ASSIGN_OR_RETURN(const std::string translated, translate_oniguruma(pattern));
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                    &offset, context.get());
  if (code == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return invalid_argument("the regular expression {} is not valid: {}", pattern,
                            reinterpret_cast<const char*>(message.data()));
  }
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without it pcre2_match interprets
  return Regex(std::make_shared<const Code>(code));
}

void Regex::for_each_match(std::string_view text,
                           const std::function<void(size_t, size_t)>& visit) const {
  thread_local const MatchScratch scratch;
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(scratch.data);
  size_t from = 0;
  size_t last_end = std::string_view::npos;
  while (from <= text.size()) {
    const int found = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK,
                                  scratch.data, scratch.context);
    if (found < 0 || offsets[0] > offsets[1] || offsets[0] < from) {
      return;
    }
    const size_t begin = offsets[0];
    const size_t end = offsets[1];
    if (begin == end && end == last_end) {
      from += from < text.size() ? utf8_length(text[from]) : 1;
      continue;
    }
    from = end;
    last_end = end;
    visit(begin, end);
  }
}

std::string replace_all(std::string_view text, const Regex& regex, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  size_t from = 0;
  regex.for_each_match(text, [&](size_t begin, size_t end) {
    out.append(text.substr(from, begin - from)).append(content);
    from = end;
  });
  out.append(text.substr(from));
  return out;
}

}  // namespace kvlab
