// Reading and writing safetensors files: a JSON header that places each tensor, then the bytes.
// Every field of the header is checked before anything is read by it. No torch.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/files.h"

namespace kvlab {

enum class StoredType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
};

std::string_view stored_type_name(StoredType type);  // "F32", as files spell it
int64_t stored_type_size(StoredType type);           // bytes an element

struct SafetensorsEntry {
  StoredType type = StoredType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // offsets in the file
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;
  std::map<std::string, std::string, std::less<>> metadata;
};

// Parses and checks the header of a whole file's bytes. Errors, each starting with `origin`: a
// truncated file, a header length beyond the file or 100 MB, JSON that is not a header, an unknown
// or unsupported (8-bit float) type, and offsets that leave the file, overlap, leave gaps or do not
// fit shape and type.
absl::StatusOr<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file,
                                                           std::string_view origin);

// A mapped file and its header.
class SafetensorsFile final {
 public:
  static absl::StatusOr<std::shared_ptr<const SafetensorsFile>> open(
      const std::filesystem::path& path);

  const SafetensorsHeader& header() const { return header_; }
  const std::filesystem::path& path() const { return map_->path(); }

  // Read-only; valid as long as this file.
  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const {
    return map_->bytes().subspan(entry.begin, entry.end - entry.begin);
  }

 private:
  SafetensorsFile() = default;

  std::shared_ptr<const MappedFile> map_;
  SafetensorsHeader header_;
};

struct SafetensorsTensor {
  std::string name;
  StoredType type = StoredType::kFloat32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  // little-endian, row-major
};

// Tensors are laid out in the order given; the header is padded so that the data start at a
// multiple of 8 bytes.
absl::Status write_safetensors(const std::filesystem::path& path,
                               std::span<const SafetensorsTensor> tensors,
                               const std::map<std::string, std::string, std::less<>>& metadata);

}  // namespace kvlab
