#include "harness/text/python_utf8.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/text/python_text.h"

namespace kvlab {
namespace {

struct Decoded {
  char32_t code_point;
  size_t size;
};

// The code point at `position` of valid UTF-8.
Decoded decode_at(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[position + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  if (first < 0xe0) {
    return {((first & 0x1f) << 6) | (byte(1) & 0x3f), 2};
  }
  if (first < 0xf0) {
    return {((first & 0x0f) << 12) | ((byte(1) & 0x3f) << 6) | (byte(2) & 0x3f), 3};
  }
  return {((first & 0x07) << 18) | ((byte(1) & 0x3f) << 12) | ((byte(2) & 0x3f) << 6) |
              (byte(3) & 0x3f),
          4};
}

}  // namespace

std::string_view python_strip(std::string_view text) {
  size_t begin = text.size();
  size_t end = 0;
  for (size_t i = 0; i < text.size();) {
    const Decoded here = decode_at(text, i);
    if (!is_python_space(here.code_point)) {
      begin = std::min(begin, i);
      end = i + here.size;
    }
    i += here.size;
  }
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

std::vector<std::string> python_words(std::string_view text) {
  std::vector<std::string> words(1);
  bool after_space = false;
  for (size_t i = 0; i < text.size();) {
    const Decoded here = decode_at(text, i);
    if (is_python_space(here.code_point)) {
      if (!after_space) {
        words.emplace_back();
      }
      after_space = true;
    } else {
      words.back().append(text.substr(i, here.size));
      after_space = false;
    }
    i += here.size;
  }
  return words;
}

std::vector<std::string> rstripped_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    size_t end = 0;
    for (size_t i = 0; i < line.size();) {
      const Decoded here = decode_at(line, i);
      i += here.size;
      if (!is_python_space(here.code_point)) {
        end = i;
      }
    }
    lines.emplace_back(line.substr(0, end));
  }
  return lines;
}

size_t python_length(std::string_view text) {
  size_t count = 0;
  for (const char c : text) {
    count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
  }
  return count;
}

std::string python_json_string(std::string_view text) {
  std::string out = "\"";
  const auto escape = [&out](char32_t unit) {
    fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<uint32_t>(unit));
  };
  for (size_t i = 0; i < text.size();) {
    const Decoded here = decode_at(text, i);
    i += here.size;
    const char32_t c = here.code_point;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\b') {
      out += "\\b";
    } else if (c == '\f') {
      out += "\\f";
    } else if (c >= 0x20 && c < 0x7f) {
      out += static_cast<char>(c);
    } else if (c < 0x10000) {
      escape(c);
    } else {
      escape(0xd800 + ((c - 0x10000) >> 10));
      escape(0xdc00 + ((c - 0x10000) & 0x3ff));
    }
  }
  out += '"';
  return out;
}

}  // namespace kvlab
