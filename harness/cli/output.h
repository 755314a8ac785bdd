// What a command prints as its result.
#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace kvlab {

// To standard output, with what was printed before. Errors: it cannot take everything (a full
// disk).
absl::Status print_output(std::string_view text);

}  // namespace kvlab
