// Reading, mapping and writing files, with errors that name the path.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace kvlab {

absl::StatusOr<std::string> read_file(const std::filesystem::path& path);

// Writes beside `path`, or beside what it links to, and renames over it, so that a reader, a kill
// or a full disk never leaves a partial file. A device or pipe is written to. Creates missing
// parent folders.
absl::Status write_file(const std::filesystem::path& path, std::string_view contents);

// A read-only memory map of a whole file. In-place writes through it fault.
class MappedFile final {
 public:
  static absl::StatusOr<std::shared_ptr<const MappedFile>> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::filesystem::path path_;
  const std::byte* data_;
  size_t size_;
};

// KVLAB_CACHE, or ~/.cache/kvlab: models, prepared data and the set-up's Python live there.
std::filesystem::path cache_dir();

// A model's or tokenizer's folder, given by path or by its name below <cache>/models. Where neither
// exists, the path as given, for the loader's error to name.
std::filesystem::path model_path(const std::string& name_or_path);

}  // namespace kvlab
