// kvlab export: stored replies in the layouts of other tools.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "harness/base/say.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "results/export_predictions.h"
#include "results/store.h"

namespace kvlab {
namespace {

struct ExportFlags {
  std::string database;
  std::string out;
};

absl::Status export_longbench(const ExportFlags& flags) {
  KVLAB_ASSIGN_OR_RETURN(const auto store,
                         ResultStore::open(flags.database, ResultStore::Mode::kRead));
  KVLAB_ASSIGN_OR_RETURN(const ExportedPredictions written,
                         export_longbench_predictions(store->database(), flags.out));
  for (const auto& file : written.files) {
    fmt::print("{}\n", file.string());
  }
  if (written.failed > 0) {
    say(stderr,
        "{} failed cells are in no file (kvlab report {} says why); kvlab run --retry failed runs "
        "them again\n",
        written.failed, flags.database);
  }
  return absl::OkStatus();
}

}  // namespace

void add_export_command(CLI::App& app, CommandAction& action) {
  CLI::App* const command =
      app.add_subcommand("export", "Write stored replies in the layouts of other tools");
  command->require_subcommand(1);
  CLI::App* const longbench = command->add_subcommand(
      "longbench", "LongBench's prediction files: MODEL/PROTOCOL/METHOD-BUDGET/TASK.jsonl");
  const auto flags = std::make_shared<ExportFlags>();
  longbench->add_option("database", flags->database, "The results database")->required();
  longbench->add_option("--out", flags->out, "Folder to write, new or empty")->required();
  longbench->footer(
      "Examples:\n"
      "  kvlab export longbench results.sqlite --out pred\n"
      "  kvlab score longbench pred/MODEL/longbench-official/snapkv-128 --out result.json");
  longbench->callback([flags, &action] { action = [flags] { return export_longbench(*flags); }; });
}

}  // namespace kvlab
