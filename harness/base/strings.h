// Converters at the border to Abseil, whose string_view is a class of its own in
// Debian's package. Everywhere else kvlab uses std::string_view and fmt.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <string_view>

namespace kvlab {

inline absl::string_view to_absl(std::string_view s) { return {s.data(), s.size()}; }
inline std::string_view from_absl(absl::string_view s) { return {s.data(), s.size()}; }

}  // namespace kvlab
