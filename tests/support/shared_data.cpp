#include "tests/support/shared_data.h"

#include <cstdlib>

#include "harness/base/files.h"

namespace kvlab {

std::optional<std::filesystem::path> shared_data_dir() {
  if (const char* named = std::getenv("KVLAB_SHARED_DATA"); named != nullptr && *named != '\0') {
    return named;
  }
  const std::filesystem::path beside =
      std::filesystem::path(KVLAB_SOURCE_DIR).parent_path() / "shared" / "data";
  if (std::filesystem::is_directory(beside)) {
    return beside;
  }
  return std::nullopt;
}

std::optional<std::filesystem::path> default_model_dir() {
  const std::filesystem::path dir = cache_dir() / "models" / "SmolLM2-135M-Instruct";
  if (std::filesystem::exists(dir / "config.json")) {
    return dir;
  }
  return std::nullopt;
}

}  // namespace kvlab
