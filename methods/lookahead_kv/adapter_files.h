// Where adapters that ship with kvlab are found.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kvlab {

// KVLAB_ADAPTERS, the checkout's methods/lookahead_kv/adapters beside the program's build folder,
// and the cache's adapters folder, those that exist.
std::vector<std::filesystem::path> adapter_folders();

// `name` as a path, else NAME or NAME.safetensors in the adapter folders. The error lists what is
// there.
absl::StatusOr<std::filesystem::path> find_adapter(const std::string& name);

}  // namespace kvlab
