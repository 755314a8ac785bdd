#include "harness/cli/threads_option.h"

#include <CLI/CLI.hpp>
#include <cstdint>

#include "harness/kernels/parallel.h"

namespace kvlab {

template <typename Integer>
void add_threads_option(CLI::App& command, Integer& threads) {
  command.add_option("--threads", threads, "CPU threads; 0: all")
      ->check(CLI::Range(0, kMaxThreads));
}

template void add_threads_option(CLI::App& command, int& threads);
template void add_threads_option(CLI::App& command, int64_t& threads);

}  // namespace kvlab
