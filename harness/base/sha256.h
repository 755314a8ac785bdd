// SHA-256 as lower-case hex.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace kvlab {

std::string sha256_hex(std::string_view bytes);
absl::StatusOr<std::string> sha256_file(const std::filesystem::path& path);

}  // namespace kvlab
