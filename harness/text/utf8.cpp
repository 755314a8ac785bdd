#include "harness/text/utf8.h"

#include <cstdint>

namespace kvlab {
namespace {

struct Decoded {
  char32_t code_point;
  size_t length;  // bytes consumed
  bool valid;     // if not, `length` is that of the maximal invalid part
};

// Unicode 15, table 3-7: which second bytes may follow a lead byte.
Decoded decode_one(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<uint8_t>(text[k]); };
  const uint8_t lead = byte(i);
  if (lead < 0x80) {
    return {lead, 1, true};
  }
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  char32_t value = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1FU;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0FU;
    low = lead == 0xE0 ? 0xA0 : low;
    high = lead == 0xED ? 0x9F : high;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07U;
    low = lead == 0xF0 ? 0x90 : low;
    high = lead == 0xF4 ? 0x8F : high;
  } else {
    return {0xFFFD, 1, false};
  }
  for (size_t k = 1; k < length; ++k) {
    if (i + k >= text.size() || byte(i + k) < low || byte(i + k) > high) {
      return {0xFFFD, k, false};
    }
    value = (value << 6U) | (byte(i + k) & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {value, length, true};
}

}  // namespace

CodePointAt code_point_at(std::string_view text, size_t at) {
  const Decoded decoded = decode_one(text, at);
  return {decoded.code_point, decoded.length};
}

size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0U) == 0x80U) {
    --at;
  }
  return at;
}

bool is_valid_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Decoded decoded = decode_one(text, i);
    if (!decoded.valid) {
      return false;
    }
    i += decoded.length;
  }
  return true;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Decoded decoded = decode_one(text, i);
    if (decoded.valid) {
      out.append(text.substr(i, decoded.length));
    } else {
      append_utf8(0xFFFD, out);
    }
    i += decoded.length;
  }
  return out;
}

std::u32string to_code_points(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Decoded decoded = decode_one(text, i);
    out.push_back(decoded.code_point);
    i += decoded.length;
  }
  return out;
}

void append_utf8(char32_t code_point, std::string& out) {
  const auto push = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0U | (code_point >> 6U));
    push(0x80U | (code_point & 0x3FU));
  } else if (code_point < 0x10000) {
    push(0xE0U | (code_point >> 12U));
    push(0x80U | ((code_point >> 6U) & 0x3FU));
    push(0x80U | (code_point & 0x3FU));
  } else {
    push(0xF0U | (code_point >> 18U));
    push(0x80U | ((code_point >> 12U) & 0x3FU));
    push(0x80U | ((code_point >> 6U) & 0x3FU));
    push(0x80U | (code_point & 0x3FU));
  }
}

std::string to_utf8(std::u32string_view code_points) {
  std::string out;
  for (const char32_t code_point : code_points) {
    append_utf8(code_point, out);
  }
  return out;
}

}  // namespace kvlab
