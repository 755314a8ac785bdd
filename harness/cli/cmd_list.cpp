// kvlab list: what sweep files can name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "benchmarks/registry.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "methods/registry.h"

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

absl::Status list_all_methods(bool verbose) {
  for (const MethodInfo& method : list_methods()) {
    fmt::print("{:<20} {}\n", method.name, method.summary);
    if (!verbose) {
      continue;
    }
    fmt::print("{:<20} source: {}\n{:<20} cost:   {}\n", "", method.source, "", method.cost);
    for (const MethodParameter& parameter : method.parameters) {
      fmt::print("{:<20}   {} = {}  {}{}\n", "", parameter.name, dump_json(parameter.default_value),
                 parameter.meaning,
                 parameter.choices.empty()
                     ? ""
                     : fmt::format(" ({})", fmt::join(parameter.choices, ", ")));
    }
    for (const MethodVariant& variant : method.variants) {
      fmt::print("{:<20}   variant {}: {} {}\n", "", variant.name, variant.meaning,
                 dump_json(variant.overrides));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void add_list_command(CLI::App& app, CommandAction& action) {
  CLI::App* list = app.add_subcommand("list", "List what a sweep file can name");
  list->require_subcommand(1);
  list->footer(
      "Examples:\n"
      "  kvlab list benchmarks --verbose\n"
      "  kvlab list methods --verbose");
  const auto add = [&](const std::string& name, const std::string& help,
                       absl::Status (*print)(bool)) {
    CLI::App* command = list->add_subcommand(name, help);
    const auto verbose = std::make_shared<bool>(false);
    command->add_flag("--verbose", *verbose, "With parameters, sources and costs, or tasks");
    command->callback(
        [&action, verbose, print] { action = [verbose, print] { return print(*verbose); }; });
  };
  add("benchmarks", "The benchmarks, a line each", list_benchmarks);
  add("methods", "The eviction methods, a line each", list_all_methods);
}

}  // namespace kvlab
