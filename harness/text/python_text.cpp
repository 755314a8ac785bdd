#include "harness/text/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <span>

#include "harness/base/check.h"

namespace kvlab {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

bool in_ranges(char32_t c, std::span<const Range> ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const Range& range) { return range.first <= c && c <= range.last; });
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

// Unicode's Cased: the letter categories with case, and these (Other_Lowercase and Other_Uppercase
// that are not case-ignorable).
bool is_cased(char32_t c) {
  constexpr std::array<Range, 7> kOther = {{{0xAA, 0xAA},
                                            {0xBA, 0xBA},
                                            {0x2160, 0x217F},
                                            {0x24B6, 0x24E9},
                                            {0x1F130, 0x1F149},
                                            {0x1F150, 0x1F169},
                                            {0x1F170, 0x1F189}}};
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
      return true;
    default:
      return in_ranges(c, kOther);
  }
}

// Unicode's Case_Ignorable: marks, formats, modifiers, and what may stand inside a word.
bool is_case_ignorable(char32_t c) {
  constexpr std::array<Range, 16> kOther = {{{0x27, 0x27},
                                             {0x2E, 0x2E},
                                             {0x3A, 0x3A},
                                             {0xB7, 0xB7},
                                             {0x387, 0x387},
                                             {0x55F, 0x55F},
                                             {0x5F4, 0x5F4},
                                             {0x2018, 0x2019},
                                             {0x2024, 0x2024},
                                             {0x2027, 0x2027},
                                             {0xFE13, 0xFE13},
                                             {0xFE52, 0xFE52},
                                             {0xFE55, 0xFE55},
                                             {0xFF07, 0xFF07},
                                             {0xFF0E, 0xFF0E},
                                             {0xFF1A, 0xFF1A}}};
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return in_ranges(c, kOther);
  }
}

// Whether the sigma at `i` ends a word: a cased letter before it and none after, looking past
// case-ignorable characters.
bool is_final_sigma(std::u32string_view text, size_t i) {
  size_t before = i;
  while (before > 0 && is_case_ignorable(text[before - 1])) {
    --before;
  }
  if (before == 0 || !is_cased(text[before - 1])) {
    return false;
  }
  size_t after = i + 1;
  while (after < text.size() && is_case_ignorable(text[after])) {
    ++after;
  }
  return after == text.size() || !is_cased(text[after]);
}

// numpy's pairwise sum of contiguous doubles.
double pairwise_sum(std::span<const double> values) {
  constexpr size_t kBlock = 128;
  if (values.size() < 8) {
    double sum = 0;
    for (const double value : values) {
      sum += value;
    }
    return sum;
  }
  if (values.size() <= kBlock) {
    std::array<double, 8> r;
    std::copy_n(values.begin(), 8, r.begin());
    size_t i = 8;
    for (; i + 8 <= values.size(); i += 8) {
      for (size_t lane = 0; lane < 8; ++lane) {
        r[lane] += values[i + lane];
      }
    }
    double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < values.size(); ++i) {
      sum += values[i];
    }
    return sum;
  }
  size_t half = values.size() / 2;
  half -= half % 8;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

}  // namespace

bool is_python_space(char32_t c) {
  constexpr std::array<Range, 10> kSpaces = {{{0x09, 0x0D},
                                              {0x1C, 0x20},
                                              {0x85, 0x85},
                                              {0xA0, 0xA0},
                                              {0x1680, 0x1680},
                                              {0x2000, 0x200A},
                                              {0x2028, 0x2029},
                                              {0x202F, 0x202F},
                                              {0x205F, 0x205F},
                                              {0x3000, 0x3000}}};
  return in_ranges(c, kSpaces);
}

bool is_python_word_character(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return c == U'_';
  }
}

bool is_python_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_ascii_punctuation(char32_t c) {
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
         (c >= 0x7B && c <= 0x7E);
}

std::vector<std::u32string_view> split_white_space(std::u32string_view text) {
  std::vector<std::u32string_view> parts;
  for (size_t i = 0; i < text.size();) {
    if (is_python_space(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && !is_python_space(text[i])) {
      ++i;
    }
    parts.push_back(text.substr(begin, i - begin));
  }
  return parts;
}

std::vector<std::u32string_view> split_at(std::u32string_view text, char32_t separator) {
  std::vector<std::u32string_view> parts;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  return parts;
}

std::u32string python_lower(std::u32string_view text) {
  constexpr char32_t kCapitalIWithDot = 0x130;
  constexpr char32_t kCombiningDotAbove = 0x307;
  constexpr char32_t kCapitalSigma = 0x3A3;
  constexpr char32_t kSigma = 0x3C3;
  constexpr char32_t kFinalSigma = 0x3C2;
  std::u32string lower;
  lower.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kCapitalIWithDot) {
      lower.push_back(U'i');
      lower.push_back(kCombiningDotAbove);
    } else if (text[i] == kCapitalSigma) {
      lower.push_back(is_final_sigma(text, i) ? kFinalSigma : kSigma);
    } else {
      lower.push_back(
          static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[i]))));
    }
  }
  return lower;
}

std::vector<std::u32string_view> find_numbers(std::u32string_view text) {
  std::vector<std::u32string_view> numbers;
  for (size_t i = 0; i < text.size();) {
    if (!is_python_digit(text[i])) {
      ++i;
      continue;
    }
    const size_t begin = i;
    while (i < text.size() && is_python_digit(text[i])) {
      ++i;
    }
    numbers.push_back(text.substr(begin, i - begin));
  }
  return numbers;
}

double python_round_2(double value) {
  const std::string digits = fmt::format("{:.2f}", value);
  double rounded = value;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return rounded;
}

double numpy_round_mean_percent(const std::vector<double>& values) {
  KVLAB_CHECK(!values.empty());
  const double mean = pairwise_sum(values) / static_cast<double>(values.size());
  return std::nearbyint(100 * mean * 100) / 100;
}

}  // namespace kvlab
