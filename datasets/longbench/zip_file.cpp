#include "datasets/longbench/zip_file.h"

#include <zip.h>

#include <array>
#include <memory>
#include <optional>

#include "harness/base/status.h"

namespace kvlab {
namespace {

struct ArchiveDiscarder {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct EntryCloser {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};

std::string_view base_name(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

absl::StatusOr<zip_uint64_t> find_entry(zip_t* archive, const std::filesystem::path& path,
                                        std::string_view file_name) {
  std::optional<zip_uint64_t> found;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    const char* const name = zip_get_name(archive, index, 0);
    if (name == nullptr || base_name(name) != file_name ||
        std::string_view(name).starts_with("__MACOSX/")) {
      continue;
    }
    if (found) {
      return invalid_argument("{}: {} stands in it more than once", path.string(), file_name);
    }
    found = index;
  }
  if (!found) {
    return not_found("{}: {} is not in it", path.string(), file_name);
  }
  return *found;
}

}  // namespace

absl::StatusOr<std::string> read_from_zip(const std::filesystem::path& archive,
                                          std::string_view file_name, int64_t max_bytes) {
  int error_code = 0;
  const std::unique_ptr<zip_t, ArchiveDiscarder> zip(
      zip_open(archive.c_str(), ZIP_RDONLY, &error_code));
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, error_code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    return data_loss("{}: cannot be read as a zip file: {}", archive.string(), reason);
  }
  KVLAB_ASSIGN_OR_RETURN(const zip_uint64_t index, find_entry(zip.get(), archive, file_name));
  const std::unique_ptr<zip_file_t, EntryCloser> entry(zip_fopen_index(zip.get(), index, 0));
  if (!entry) {
    return data_loss("{}: {} cannot be read: {}", archive.string(), file_name,
                     zip_strerror(zip.get()));
  }
  std::string contents;
  std::array<char, 1U << 16U> buffer;
  while (true) {
    const zip_int64_t got = zip_fread(entry.get(), buffer.data(), buffer.size());
    if (got < 0) {
      return data_loss("{}: {} is damaged: {}", archive.string(), file_name,
                       zip_file_strerror(entry.get()));
    }
    if (got == 0) {
      return contents;
    }
    if (static_cast<int64_t>(contents.size()) + got > max_bytes) {
      return data_loss("{}: {} is larger than {} bytes", archive.string(), file_name, max_bytes);
    }
    contents.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace kvlab
