#include "harness/base/allocator.h"

#if defined(KVLAB_JEMALLOC)
#include <fmt/format.h>
#include <jemalloc/jemalloc.h>

#include <string_view>

// jemalloc looks for this name; the environment variable MALLOC_CONF still wins.
extern "C" {
const char* malloc_conf = "thp:always,metadata_thp:auto";
}

namespace kvlab {
namespace {

std::string_view setting(const char* name) {
  const char* value = "?";
  size_t size = sizeof(value);
  mallctl(name, static_cast<void*>(&value), &size, nullptr, 0);
  return value;
}

}  // namespace

std::string allocator_name() {
  const std::string_view version = setting("version");
  return fmt::format("jemalloc {}, thp:{}", version.substr(0, version.find('-')),
                     setting("opt.thp"));
}

}  // namespace kvlab
#else
namespace kvlab {
std::string allocator_name() { return "the C library's"; }
}  // namespace kvlab
#endif
