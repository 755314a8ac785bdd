#include "methods/lookahead_kv/adapter_files.h"

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {

std::vector<std::filesystem::path> adapter_folders() {
  std::vector<std::filesystem::path> folders;
  const auto add = [&](const std::filesystem::path& folder) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) {
      folders.push_back(folder);
    }
  };
  if (const char* named = std::getenv("KVLAB_ADAPTERS"); named != nullptr && *named != '\0') {
    add(named);
  }
  std::error_code error;
  std::filesystem::path above = std::filesystem::read_symlink("/proc/self/exe", error);
  while (!error && above.has_relative_path()) {
    above = above.parent_path();
    add(above / "methods" / "lookahead_kv" / "adapters");
  }
  add(cache_dir() / "adapters");
  return folders;
}

absl::StatusOr<std::filesystem::path> find_adapter(const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) {
    return std::filesystem::path(name);
  }
  std::string there;
  for (const auto& folder : adapter_folders()) {
    for (const std::string& file : {name, name + ".safetensors"}) {
      if (std::filesystem::is_regular_file(folder / file, error)) {
        return folder / file;
      }
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      if (entry.path().extension() == ".safetensors") {
        there += (there.empty() ? "" : ", ") + entry.path().stem().string();
      }
    }
  }
  return not_found("no adapter \"{}\": neither a file nor one that ships ({})", name,
                   there.empty() ? "none found" : there);
}

}  // namespace kvlab
