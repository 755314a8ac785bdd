// What every command that runs a model sets up and records about the process.
#pragma once

#include <string>

#include "harness/base/json.h"

namespace kvlab {

// Threads of LibTorch and of kvlab's kernels; 0: all cores.
void set_compute_threads(int threads);

// LibTorch, SQLite, PCRE2, ... as linked.
Json library_versions();

// This process's command line, from /proc.
std::string command_line();

}  // namespace kvlab
