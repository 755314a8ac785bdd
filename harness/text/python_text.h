// The few Python string operations that LongBench's scorer is written in, on code points.
// Unicode data is utf8proc's (Unicode 15); Python 3.12 has the same, 3.11 has Unicode 14.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

// str.isspace() of one character, and `\s` of Python's re: 29 code points.
bool is_python_space(char32_t c);

// `\w` of Python's re: letters, numbers of every kind and "_" (but no combining marks).
bool is_python_word_character(char32_t c);

// `\d` of Python's re: category Nd.
bool is_python_digit(char32_t c);

// string.punctuation: the 32 punctuation and symbol characters of ASCII.
bool is_ascii_punctuation(char32_t c);

// str.split(): parts between runs of white space; no empty parts.
std::vector<std::u32string_view> split_white_space(std::u32string_view text);

// str.split(separator): empty parts are kept.
std::vector<std::u32string_view> split_at(std::u32string_view text, char32_t separator);

// str.lower(): full mappings (U+0130 becomes two code points) and the rule for final sigma.
std::u32string python_lower(std::u32string_view text);

// re.findall(r"\d+", text).
std::vector<std::u32string_view> find_numbers(std::u32string_view text);

// round(value, 2) of a Python float: the nearest two-decimal number to the exact binary value.
double python_round_2(double value);

// round(100 * numpy.mean(values), 2) as LongBench-E's scorer computes it: numpy adds pairwise, and
// its round() multiplies, rounds half to even, and divides. `values` must not be empty.
double numpy_round_mean_percent(const std::vector<double>& values);

}  // namespace kvlab
