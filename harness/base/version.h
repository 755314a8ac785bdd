// What this program was built from.
#pragma once

#include <string_view>

namespace kvlab {

std::string_view kvlab_version();  // "0.1.0"
std::string_view git_commit();     // "1a2b3c4d5e6f", "-dirty" behind it for changed files; or ""
std::string_view build_type();     // "Release"

}  // namespace kvlab
