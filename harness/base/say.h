// Messages for people. A stream that cannot take them (a full disk, a terminal that is gone) never
// ends the work they are about; fmt::print would throw.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace kvlab {

template <typename... Args>
void say(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)std::fwrite(text.data(), 1, text.size(), stream);
}

}  // namespace kvlab
