// Replacing text.
#pragma once

#include <string>
#include <string_view>

namespace kvlab {

// Every occurrence of `literal`, left to right, as Python's str.replace; an empty one changes
// nothing.
std::string replace_all(std::string_view text, std::string_view literal, std::string_view content);

}  // namespace kvlab
