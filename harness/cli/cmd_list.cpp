// `kvlab list`: what sweep files can name.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "benchmarks/registry.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"

namespace kvlab {
namespace {

absl::Status list_benchmarks(bool verbose) {
  for (const Benchmark* benchmark : benchmarks()) {
    fmt::print("{:<14} {}\n", benchmark->name(), benchmark->summary());
    if (verbose) {
      fmt::print("{:<14} tasks: {}\n", "", fmt::join(benchmark->tasks(), ", "));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void add_list_command(CLI::App& app, CommandAction& action) {
  CLI::App* list = app.add_subcommand("list", "List what a sweep file can name.");
  list->require_subcommand(1);
  list->footer("Examples:\n  kvlab list benchmarks\n  kvlab list benchmarks --verbose");

  CLI::App* command = list->add_subcommand("benchmarks", "The benchmarks, a line each.");
  const auto verbose = std::make_shared<bool>(false);
  command->add_flag("--verbose", *verbose, "With the tasks of each");
  command->callback([&action, verbose] { action = [verbose] { return list_benchmarks(*verbose); }; });
}

}  // namespace kvlab
