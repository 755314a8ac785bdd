#include "harness/model/model_fingerprint.h"

#include <algorithm>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {
constexpr size_t kEdgeBytes = 64 << 10;
}  // namespace

absl::StatusOr<std::string> weights_fingerprint(const std::filesystem::path& model_dir) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(model_dir, error)) {
    if (entry.path().extension() == ".safetensors") {
      files.push_back(entry.path());
    }
  }
  if (error || files.empty()) {
    return not_found("{}: no *.safetensors file", model_dir.string());
  }
  std::sort(files.begin(), files.end());
  std::string digest;
  for (const auto& path : files) {
    KVLAB_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
    const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                                 file->bytes().size());
    const size_t edge = std::min(bytes.size(), kEdgeBytes);
    digest += fmt::format("{} {} {} {}\n", path.filename().string(), bytes.size(),
                          sha256_hex(bytes.substr(0, edge)),
                          sha256_hex(bytes.substr(bytes.size() - edge)));
  }
  return sha256_hex(digest);
}

}  // namespace kvlab
