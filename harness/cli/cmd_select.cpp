// kvlab select: which prompt entries a method keeps, as a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/model_flags.h"

namespace kvlab {
namespace {

struct SelectFlags {
  ModelFlags model;
  int64_t max_new_tokens = 128;
  std::string out;
};

absl::Status select(const SelectFlags& flags) {
  if (flags.max_new_tokens < 1) {
    return invalid_argument("--max-new-tokens {}: give 1 or more", flags.max_new_tokens);
  }
  catch_interrupts();
  KVLAB_ASSIGN_OR_RETURN(const LoadedPrompt prompt, load_prompt(flags.model, flags.max_new_tokens));
  if (!prompt.method->budget) {
    return invalid_argument("the method {} keeps every entry: there is nothing to select",
                            prompt.method->policy->name());
  }
  KVLAB_ASSIGN_OR_RETURN(const PreparedPrompt prepared,
                         prepare_prompt(flags.model, prompt, flags.max_new_tokens));
  const Selection& selection = prepared.selected->result.selection;
  const Json out = {{"model_config_hash", prompt.model->config().content_hash},
                    {"prompt_tokens", selection.prompt_len},
                    {"method", prompt.method->policy->name()},
                    {"parameters", prompt.method->policy->resolved_params()},
                    {"budget", prepared.budget_entries},
                    {"kept_entries", selection.total_entries()},
                    {"kept", selection.kept}};
  return write_file(flags.out, dump_json(out) + "\n");
}

}  // namespace

void add_select_command(CLI::App& app, CommandAction& action) {
  CLI::App* command =
      app.add_subcommand("select", "Write the prompt entries a method keeps, per layer and head");
  const auto flags = std::make_shared<SelectFlags>();
  add_model_flags(*command, flags->model, /*method_required=*/true);
  command
      ->add_option("--max-new-tokens", flags->max_new_tokens,
                   "Longest reply, for methods that look at one")
      ->capture_default_str();
  command->add_option("--out", flags->out, "JSON file: kept[layer][KV head] = positions")
      ->required();
  command->footer(
      "Examples:\n"
      "  kvlab select --model SmolLM2-135M-Instruct --prompt-file p.txt --method snapkv --budget "
      "128 --out "
      "kept.json\n"
      "  kvlab select --model SmolLM2-135M-Instruct --prompt-file p.txt --method snapkv --budget "
      "5% \\\n"
      "      --set kernel=5 --dtype float32 --out kept.json");
  command->callback([flags, &action] { action = [flags] { return select(*flags); }; });
}

}  // namespace kvlab
