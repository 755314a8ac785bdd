// Golden tensors (safetensors) as plain vectors.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/check.h"
#include "harness/model/safetensors.h"

namespace kvlab {

class GoldenFile final {
 public:
  explicit GoldenFile(const std::filesystem::path& path) {
    auto file = SafetensorsFile::open(path);
    if (!file.ok()) {
      std::fprintf(stderr, "%s\n", std::string(file.status().message()).c_str());
    }
    KVLAB_CHECK(file.ok());
    file_ = *std::move(file);
  }

  template <typename T>
  std::vector<T> get(const std::string& name) const {
    const auto it = file_->header().tensors.find(name);
    KVLAB_CHECK(it != file_->header().tensors.end());
    KVLAB_CHECK(stored_type_size(it->second.type) == static_cast<int64_t>(sizeof(T)));
    const auto bytes = file_->bytes(it->second);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  bool has(std::string_view name) const { return file_->header().tensors.contains(name); }

  // What stands between `start` and `end` in the names that begin and end so.
  std::vector<std::string> names_with(std::string_view start, std::string_view end) const {
    std::vector<std::string> result;
    for (const auto& [name, entry] : file_->header().tensors) {
      if (name.size() > start.size() + end.size() && name.starts_with(start) &&
          name.ends_with(end)) {
        result.push_back(name.substr(start.size(), name.size() - start.size() - end.size()));
      }
    }
    return result;
  }

  // The names before the first dot ("5" of "5.prompt_ids"), each once.
  std::vector<std::string> cases() const {
    std::map<std::string, int> names;
    for (const auto& [name, entry] : file_->header().tensors) {
      names[name.substr(0, name.find('.'))] = 1;
    }
    std::vector<std::string> result;
    for (const auto& [name, unused] : names) {
      result.push_back(name);
    }
    return result;
  }

 private:
  std::shared_ptr<const SafetensorsFile> file_;
};

inline std::filesystem::path golden_dir() {
  return std::filesystem::path(KVLAB_TEST_DIR) / "golden";
}

}  // namespace kvlab
