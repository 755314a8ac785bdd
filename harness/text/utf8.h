// UTF-8 and code points. Foreign text passes to_valid_utf8 once, at the border.
#pragma once

#include <string>
#include <string_view>

namespace kvlab {

bool is_valid_utf8(std::string_view text);

// Every maximal invalid part becomes one U+FFFD (as Python's errors="replace").
std::string to_valid_utf8(std::string_view text);

// Code points of valid UTF-8, and back.
std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view code_points);
void append_utf8(char32_t code_point, std::string& out);

// The code point that starts at byte `at` of `text`, and its length; U+FFFD where it is invalid.
struct CodePointAt {
  char32_t code_point;
  size_t length;
};
CodePointAt code_point_at(std::string_view text, size_t at);

// Where the last character of `text` (not empty) starts.
size_t last_character(std::string_view text);

}  // namespace kvlab
