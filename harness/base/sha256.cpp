#include "harness/base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  KVLAB_CHECK(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) == 1);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += fmt::format("{:02x}", digest[i]);
  }
  return hex;
}

absl::StatusOr<std::string> sha256_file(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  return sha256_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace kvlab
