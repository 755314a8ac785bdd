#include "harness/model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "harness/base/json.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kLengthBytes = 8;

struct TypeInfo {
  StoredType type;
  std::string_view name;
  int64_t size;
};
constexpr std::array kTypes = {
    TypeInfo{StoredType::kFloat64, "F64", 8}, TypeInfo{StoredType::kFloat32, "F32", 4},
    TypeInfo{StoredType::kFloat16, "F16", 2}, TypeInfo{StoredType::kBFloat16, "BF16", 2},
    TypeInfo{StoredType::kInt64, "I64", 8},   TypeInfo{StoredType::kInt32, "I32", 4},
    TypeInfo{StoredType::kInt16, "I16", 2},   TypeInfo{StoredType::kInt8, "I8", 1},
    TypeInfo{StoredType::kUInt8, "U8", 1},    TypeInfo{StoredType::kBool, "BOOL", 1},
};

const TypeInfo& info_of(StoredType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [type](const TypeInfo& info) { return info.type == type; });
}

std::string type_names() {
  std::string names;
  for (const TypeInfo& info : kTypes) {
    names += names.empty() ? "" : ", ";
    names += info.name;
  }
  return names;
}

// A number that fits int64 and is not negative.
std::optional<int64_t> as_size(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(INT64_MAX)) {
      return static_cast<int64_t>(number);
    }
  }
  return std::nullopt;
}

absl::StatusOr<SafetensorsEntry> parse_entry(const Json& value, const std::string& name,
                                             std::string_view origin) {
  const auto bad = [&](std::string_view what) {
    return data_loss("{}: tensor '{}': {}", origin, name, what);
  };
  if (!value.is_object()) {
    return bad("its header entry is not an object");
  }
  for (const auto& [key, unused] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return bad(fmt::format("unknown header field '{}'", key));
    }
  }
  if (!value.contains("dtype") || !value.at("dtype").is_string()) {
    return bad("'dtype' is missing or not a string");
  }
  const auto dtype = value.at("dtype").get<std::string>();
  const auto info = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeInfo& candidate) {
    return candidate.name == dtype;
  });
  if (info == kTypes.end()) {
    if (dtype.starts_with("F8") || dtype.starts_with("F4") || dtype.starts_with("F6")) {
      return unimplemented(
          "{}: tensor '{}' is quantised ({}); kvlab reads F32, F16 and BF16 weights. Use an "
          "unquantised copy of the model",
          origin, name, dtype);
    }
    return bad(fmt::format("unknown dtype '{}' (known: {})", dtype, type_names()));
  }
  if (!value.contains("shape") || !value.at("shape").is_array()) {
    return bad("'shape' is missing or not an array");
  }
  SafetensorsEntry entry;
  entry.type = info->type;
  int64_t bytes = info->size;
  for (const Json& dimension : value.at("shape")) {
    const std::optional<int64_t> size = as_size(dimension);
    if (!size) {
      return bad("'shape' holds something that is not a size");
    }
    if (__builtin_mul_overflow(bytes, *size, &bytes)) {
      return bad("'shape' is larger than any file");
    }
    entry.shape.push_back(*size);
  }
  if (!value.contains("data_offsets") || !value.at("data_offsets").is_array() ||
      value.at("data_offsets").size() != 2) {
    return bad("'data_offsets' is missing or not a pair");
  }
  const std::optional<int64_t> begin = as_size(value.at("data_offsets")[0]);
  const std::optional<int64_t> end = as_size(value.at("data_offsets")[1]);
  if (!begin || !end || *begin > *end) {
    return bad("'data_offsets' is not an ascending pair of offsets");
  }
  if (*end - *begin != bytes) {
    return bad(
        fmt::format("shape and dtype need {} bytes, 'data_offsets' give {}", bytes, *end - *begin));
  }
  entry.begin = static_cast<uint64_t>(*begin);
  entry.end = static_cast<uint64_t>(*end);
  return entry;
}

absl::Status check_coverage(const SafetensorsHeader& header, uint64_t data_size,
                            std::string_view origin) {
  std::vector<std::pair<const SafetensorsEntry*, std::string_view>> entries;
  for (const auto& [name, entry] : header.tensors) {
    if (entry.end > data_size) {
      return data_loss(
          "{}: tensor '{}' ends at byte {} of the data, but the file holds {}; is it truncated?",
          origin, name, entry.end, data_size);
    }
    entries.emplace_back(&entry, name);
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first->begin, a.first->end) < std::pair(b.first->begin, b.first->end);
  });
  uint64_t position = 0;
  for (const auto& [entry, name] : entries) {
    if (entry->begin != position) {
      return data_loss("{}: tensor '{}' starts at byte {} of the data, expected {} ({})", origin,
                       name, entry->begin, position,
                       entry->begin < position ? "tensors overlap" : "bytes belong to no tensor");
    }
    position = entry->end;
  }
  if (position != data_size) {
    return data_loss("{}: the last {} bytes belong to no tensor", origin, data_size - position);
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view stored_type_name(StoredType type) { return info_of(type).name; }
int64_t stored_type_size(StoredType type) { return info_of(type).size; }

absl::StatusOr<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> file,
                                                           std::string_view origin) {
  if (file.size() < kLengthBytes) {
    return data_loss("{}: not a safetensors file: only {} bytes", origin, file.size());
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(std::to_integer<uint8_t>(file[i])) << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    return data_loss("{}: not a safetensors file: its header would be {} bytes (at most {})",
                     origin, length, kMaxHeaderBytes);
  }
  if (length > file.size() - kLengthBytes) {
    return data_loss("{}: truncated: the header is {} bytes, the file {}", origin, length,
                     file.size());
  }
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  KVLAB_ASSIGN_OR_RETURN(const Json json, parse_json(text, fmt::format("{} (header)", origin)));
  if (!json.is_object()) {
    return data_loss("{}: the safetensors header is not a JSON object", origin);
  }
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) {
        return data_loss("{}: '__metadata__' is not an object", origin);
      }
      for (const auto& [key, text_value] : value.items()) {
        if (!text_value.is_string()) {
          return data_loss("{}: '__metadata__': '{}' is not a string", origin, key);
        }
        header.metadata.emplace(key, text_value.get<std::string>());
      }
      continue;
    }
    KVLAB_ASSIGN_OR_RETURN(SafetensorsEntry entry, parse_entry(value, name, origin));
    header.tensors.emplace(name, std::move(entry));
  }
  const uint64_t data_begin = kLengthBytes + length;
  KVLAB_RETURN_IF_ERROR(check_coverage(header, file.size() - data_begin, origin));
  for (auto& [name, entry] : header.tensors) {
    entry.begin += data_begin;
    entry.end += data_begin;
  }
  return header;
}

absl::StatusOr<std::shared_ptr<const SafetensorsFile>> SafetensorsFile::open(
    const std::filesystem::path& path) {
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile());
  KVLAB_ASSIGN_OR_RETURN(file->map_, MappedFile::open(path));
  KVLAB_ASSIGN_OR_RETURN(file->header_,
                         parse_safetensors_header(file->map_->bytes(), path.string()));
  return std::shared_ptr<const SafetensorsFile>(std::move(file));
}

absl::Status write_safetensors(const std::filesystem::path& path,
                               std::span<const SafetensorsTensor> tensors,
                               const std::map<std::string, std::string, std::less<>>& metadata) {
  Json json = Json::object();
  if (!metadata.empty()) {
    json["__metadata__"] = metadata;
  }
  uint64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.name == "__metadata__" || json.contains(tensor.name)) {
      return invalid_argument("{}: two tensors named '{}'", path.string(), tensor.name);
    }
    int64_t bytes = stored_type_size(tensor.type);
    for (const int64_t size : tensor.shape) {
      bytes *= size;
    }
    if (bytes != static_cast<int64_t>(tensor.data.size())) {
      return invalid_argument("{}: tensor '{}' has {} bytes, its shape needs {}", path.string(),
                              tensor.name, tensor.data.size(), bytes);
    }
    json[tensor.name] = {{"dtype", stored_type_name(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string header = dump_json(json);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string contents;
  contents.reserve(kLengthBytes + header.size() + offset);
  for (size_t i = 0; i < kLengthBytes; ++i) {
    contents.push_back(static_cast<char>((header.size() >> (8 * i)) & 0xff));
  }
  contents += header;
  for (const SafetensorsTensor& tensor : tensors) {
    contents.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  }
  return write_file(path, contents);
}

}  // namespace kvlab
