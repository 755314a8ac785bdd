#include "harness/text/text_file.h"

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/text/utf8.h"

namespace kvlab {

absl::StatusOr<std::string> read_utf8_file(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(std::string text, read_file(path));
  if (!is_valid_utf8(text)) {
    const std::string valid = to_valid_utf8(text);
    const auto first = std::mismatch(text.begin(), text.end(), valid.begin(), valid.end()).first;
    return invalid_argument("{}: not UTF-8 from byte {} on, counted from 0", path.string(),
                            first - text.begin());
  }
  return text;
}

}  // namespace kvlab
