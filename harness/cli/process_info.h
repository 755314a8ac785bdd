// What a run's row records about the process.
#pragma once

#include <string>

#include "harness/base/json.h"

namespace kvlab {

// LibTorch, SQLite, PCRE2, malloc and the compiler, as linked.
Json library_versions();

// This process's command line, from /proc.
std::string command_line();

}  // namespace kvlab
