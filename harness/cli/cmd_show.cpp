#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "reports/show.h"
#include "results/store.h"

namespace kvlab {
namespace {

absl::Status run_show(const std::string& database, const ShowOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(const auto store, ResultStore::open(database, ResultStore::Mode::kRead));
  KVLAB_ASSIGN_OR_RETURN(const std::string out, show_sample(store->database(), options));
  return print_output(out);
}

}  // namespace

void add_show_command(CLI::App& app, CommandAction& action) {
  auto database = std::make_shared<std::string>();
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = app.add_subcommand(
      "show", "Print a sample: its prompt, and every arm's reply, timings and kept positions");
  command->add_option("database", *database, "The results database")->required();
  command->add_option("--sample", options->sample, "The sample's key")->required();
  command->add_option("--method", options->only_method, "Only this method");
  command->add_flag("--prompt", options->prompt, "The whole prompt, not just its two ends");
  command->add_flag("--positions", options->positions, "Kept positions as ranges, not as a map");
  command->footer(
      "Examples:\n"
      "  kvlab show results.sqlite --sample ruler/vt/4096/seed42/base/3\n"
      "  kvlab show results.sqlite --sample ruler/vt/4096/seed42/base/3 --method snapkv "
      "--positions");
  command->callback([database, options, &action] {
    action = [database, options] { return run_show(*database, *options); };
  });
}

}  // namespace kvlab
