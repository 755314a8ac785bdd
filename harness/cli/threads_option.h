// The option --threads of every command that computes.
#pragma once

namespace CLI {
class App;
}

namespace kvlab {

// --threads, 0 to kMaxThreads; 0: all. `threads` is int or int64_t; other numbers are refused by
// the command line.
template <typename Integer>
void add_threads_option(CLI::App& command, Integer& threads);

}  // namespace kvlab
