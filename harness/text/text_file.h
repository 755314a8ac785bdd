// Text that a user gives as a file.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

namespace kvlab {

// Errors: it cannot be read; it is not UTF-8, with the first byte that is not.
absl::StatusOr<std::string> read_utf8_file(const std::filesystem::path& path);

}  // namespace kvlab
