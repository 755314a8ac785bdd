#include "harness/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/base/status.h"

namespace kvlab {

absl::Status print_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return failed_precondition("cannot write the output: {}", std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace kvlab
