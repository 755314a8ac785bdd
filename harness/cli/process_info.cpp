#include "harness/cli/process_info.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <torch/version.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "harness/base/allocator.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace kvlab {

Json library_versions() {
  return {{"libtorch", TORCH_VERSION},
          {"sqlite", sqlite3_libversion()},
          {"pcre2", fmt::format("{}.{}", PCRE2_MAJOR, PCRE2_MINOR)},
          {"compiler", __VERSION__},
          {"malloc", allocator_name()}};
}

std::string command_line() {
  // /proc files have no size, so they are read to their end.
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::replace(text.begin(), text.end(), '\0', ' ');
  while (!text.empty() && text.back() == ' ') {
    text.pop_back();
  }
  return text;
}

}  // namespace kvlab
