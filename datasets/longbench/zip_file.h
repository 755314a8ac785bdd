// Reading single files out of a zip archive.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace kvlab {

// The contents of the entry whose name without folders is `file_name`, checksum verified. An error:
// no such entry, two of them, a damaged archive, or more than `max_bytes` of contents.
absl::StatusOr<std::string> read_from_zip(const std::filesystem::path& archive,
                                          std::string_view file_name, int64_t max_bytes);

}  // namespace kvlab
