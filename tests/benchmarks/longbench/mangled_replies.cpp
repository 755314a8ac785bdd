#include "tests/benchmarks/longbench/mangled_replies.h"

#include <algorithm>
#include <array>
#include <vector>

#include "harness/text/python_text.h"

namespace kvlab {
namespace {

constexpr std::array<char32_t, 17> kControls = {0x00,   0x07,   0x08,   0x0A,   0x0B,  0x0C,
                                                0x0D,   0x1C,   0x1F,   0x7F,   0x85,  0xA0,
                                                0x200B, 0x2028, 0x3000, 0xFEFF, 0xFFFD};
constexpr std::array<char32_t, 37> kSoup = {
    0x20,     0x20,   0x20,   0x0A,   0x2E,   0x2E,   0x2C,   0x61,   0x62,   0x41,
    0x5A,     0x31,   0x39,   0x660,  0x130,  0x3A3,  0x3B1,  0x391,  0xDF,   0x1C5,
    0x301,    0x4E00, 0x4E2D, 0x56FD, 0x9FD5, 0x9FD6, 0x3002, 0xFF0C, 0xFF21, 0x1F600,
    0x10FFFF, 0x2B,   0x25,   0x2D,   0x23,   0x60,   0x2F};
const std::array<std::u32string, 8> kNumbers = {
    U"1", U"2 ", U"Paragraph 3 ", U"段落5", U" 17.", U"\u0664\u0662", U"30", U" 007 "};

std::u32string replaced(std::u32string_view text, std::u32string_view from,
                        std::u32string_view to) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i, from.size()) == from) {
      out.append(to);
      i += from.size();
    } else {
      out.push_back(text[i++]);
    }
  }
  return out;
}

std::u32string joined(const std::vector<std::u32string_view>& words) {
  std::u32string out;
  for (size_t i = 0; i < words.size(); ++i) {
    out.append(i == 0 ? U"" : U" ");
    out.append(words[i]);
  }
  return out;
}

std::u32string with_controls(const std::u32string& reply, MangleRandom& random) {
  std::u32string out;
  for (const char32_t c : reply) {
    if (random.below(8) == 0) {
      out.push_back(kControls[random.below(kControls.size())]);
    }
    out.push_back(c);
  }
  return out;
}

std::u32string huge(const std::u32string& reply) {
  const std::u32string base = reply.empty() ? U"x y. " : reply;
  std::u32string out;
  for (size_t i = 0; i < 20000 / base.size() + 1; ++i) {
    out.append(base);
  }
  return out;
}

std::u32string shuffled(const std::u32string& reference, MangleRandom& random) {
  std::vector<std::u32string_view> words = split_at(reference, U' ');
  for (size_t i = words.size() - 1; i > 0; --i) {
    std::swap(words[i], words[random.below(i + 1)]);
  }
  return joined(words);
}

std::u32string long_sentence(const std::u32string& reply, const std::u32string& reference,
                             MangleRandom& random) {
  const std::u32string text = replaced(reference + U" " + reply, U".", U" ");
  const std::vector<std::u32string_view> words = split_at(text, U' ');
  std::vector<std::u32string_view> chosen(900 + random.below(200));
  for (size_t i = 0; i < chosen.size(); ++i) {
    chosen[i] = words[i % words.size()];
  }
  return joined(chosen);
}

}  // namespace

uint64_t MangleRandom::next() {
  state_ += 0x9E3779B97F4A7C15U;
  uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

std::u32string mangle(std::string_view kind, const std::u32string& reply,
                      const std::u32string& reference, const std::u32string& other,
                      MangleRandom& random) {
  if (kind == "as_is") {
    return reply;
  }
  if (kind == "no_periods") {
    return replaced(reply, U".", U"");
  }
  if (kind == "control_characters") {
    return with_controls(reply, random);
  }
  if (kind == "huge") {
    return huge(reply);
  }
  if (kind == "with_reference") {
    const size_t at = random.below(reply.size() + 1);
    return reply.substr(0, at) + U" " + reference + U"\n" + reply.substr(at);
  }
  if (kind == "damaged_reference") {
    std::u32string out;
    std::copy_if(reference.begin(), reference.end(), std::back_inserter(out),
                 [&](char32_t /*c*/) { return random.below(10) != 0; });
    return out;
  }
  if (kind == "reversed") {
    return {reply.rbegin(), reply.rend()};
  }
  if (kind == "leading_white_space") {
    const std::u32string newlines = std::u32string(U"\n\n").substr(0, random.below(3));
    const std::u32string spaces = std::u32string(U" \t\u3000").substr(0, random.below(4));
    return newlines + spaces + reference + U"\n" + reply;
  }
  if (kind == "numbers") {
    std::u32string out;
    for (uint64_t left = 1 + random.below(5); left > 0; --left) {
      out.append(kNumbers[random.below(kNumbers.size())]);
    }
    return out + reference;
  }
  if (kind == "shuffled_words") {
    return shuffled(reference, random);
  }
  if (kind == "soup") {
    std::u32string out(random.below(400), U' ');
    std::generate(out.begin(), out.end(), [&] { return kSoup[random.below(kSoup.size())]; });
    return out;
  }
  if (kind == "code_fence") {
    return U"\n```python\n# comment\n" + reference + U"\nx = 1 // 2\n```";
  }
  if (kind == "other_reply") {
    return other;
  }
  if (kind == "long_sentence") {
    return long_sentence(reply, reference, random);
  }
  if (kind == "wide_case") {
    return replaced(replaced(replaced(reply + reference, U"i", U"\u0130"), U"s", U"\u03A3"), U"a ",
                    U"\u00C4 ");
  }
  return {};
}

}  // namespace kvlab
