#include "harness/text/byte_level.h"

#include <array>

#include "harness/text/utf8.h"

namespace kvlab {
namespace {

constexpr size_t kAlphabetEnd = 0x100 + 68;  // 68 bytes are not printable and move up

struct Tables {
  std::array<std::string, 256> character;
  std::array<int, kAlphabetEnd> byte;  // -1: stands for no byte
};

// Printable bytes keep their code point; the others take U+0100 on, in order.
bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

const Tables& tables() {
  static const Tables made = [] {
    Tables t;
    t.byte.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t code_point = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
      append_utf8(code_point, t.character.at(static_cast<size_t>(byte)));
      t.byte.at(code_point) = byte;
    }
    return t;
  }();
  return made;
}

}  // namespace

std::string_view byte_level_character(unsigned char byte) { return tables().character[byte]; }

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    out += byte_level_character(static_cast<unsigned char>(byte));
  }
  return out;
}

std::optional<std::string> from_byte_level(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char32_t code_point : to_code_points(text)) {
    const int byte = code_point < kAlphabetEnd ? tables().byte[code_point] : -1;
    if (byte < 0) {
      return std::nullopt;
    }
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

}  // namespace kvlab
