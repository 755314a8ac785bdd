// GPT-2's spelling of bytes as printable characters: every byte has one code point.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kvlab {

// The character that stands for `byte`, in UTF-8.
std::string_view byte_level_character(unsigned char byte);

// Every byte of `bytes` as its character.
std::string to_byte_level(std::string_view bytes);

// The bytes that `text` spells; nothing if one of its characters stands for no byte.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace kvlab
