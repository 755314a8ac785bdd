#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "results/merge.h"

namespace kvlab {
namespace {

struct MergeFlags {
  std::vector<std::string> sources;
  std::string target;
  std::string on_conflict = "refuse";
};

absl::Status run_merge(const MergeFlags& flags) {
  if (flags.on_conflict != "refuse" && flags.on_conflict != "record") {
    return invalid_argument("--on-conflict \"{}\": expected refuse or record", flags.on_conflict);
  }
  const std::vector<std::filesystem::path> sources(flags.sources.begin(), flags.sources.end());
  KVLAB_ASSIGN_OR_RETURN(
      const auto merged,
      merge_databases(sources, flags.target,
                      flags.on_conflict == "record" ? OnConflict::kRecord : OnConflict::kRefuse));
  for (const MergeCounts& counts : merged) {
    fmt::print("{}: {} cells added, {} there already, {} replaced a failed one, {} in conflict\n",
               counts.source.string(), counts.added, counts.same, counts.replaced,
               counts.conflicts);
  }
  return absl::OkStatus();
}

}  // namespace

void add_merge_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App* command = app.add_subcommand("merge", "Join the databases of shards or machines");
  command->add_option("sources", flags->sources, "The databases to join")->required();
  command->add_option("--into", flags->target, "The database to write; made when missing")
      ->required();
  command
      ->add_option("--on-conflict", flags->on_conflict,
                   "What to do with cells whose outcomes differ: refuse, or record (the first "
                   "stays, the other goes to the table conflicts)")
      ->capture_default_str();
  command->footer(
      "Merging again changes nothing. Examples:\n"
      "  kvlab merge shard1.sqlite shard2.sqlite --into all.sqlite\n"
      "  kvlab merge other-machine.sqlite --into all.sqlite --on-conflict record");
  command->callback([flags, &action] { action = [flags] { return run_merge(*flags); }; });
}

}  // namespace kvlab
