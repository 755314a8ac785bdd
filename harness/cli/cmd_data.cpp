// `kvlab data`: writes benchmark prompts to files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "benchmarks/ruler/generator.h"
#include "benchmarks/ruler/options.h"
#include "benchmarks/ruler/source_loader.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"

namespace kvlab {
namespace {

struct RulerArguments {
  std::string task;
  int64_t length = 4096;
  int64_t samples = 10;
  int64_t seed = 42;
  std::string tokenizer;
  std::string format = "base";
  std::string essays;
  std::string squad;
  std::string hotpotqa;
  std::string wordlists;
  std::string punkt;
  std::string out;
};

absl::Status write_ruler(const RulerArguments& arguments) {
  // The same checks as a sweep file's.
  Json params = {{"tasks", Json::array({arguments.task})},
                 {"lengths", Json::array({arguments.length})},
                 {"samples", arguments.samples},
                 {"seed", arguments.seed},
                 {"template", arguments.format}};
  for (const auto& [key, value] :
       {std::pair("essays", &arguments.essays), std::pair("squad", &arguments.squad),
        std::pair("hotpotqa", &arguments.hotpotqa), std::pair("wordlists", &arguments.wordlists),
        std::pair("punkt", &arguments.punkt)}) {
    if (!value->empty()) {
      params[key] = *value;
    }
  }
  KVLAB_ASSIGN_OR_RETURN(const RulerOptions options, parse_ruler_options(params));
  if (options.tasks.size() != 1) {
    return invalid_argument("--task: one file holds one task");
  }
  RulerRequest request;
  KVLAB_ASSIGN_OR_RETURN(request.task, find_ruler_task(options.tasks[0]));
  request.length = arguments.length;
  request.samples = options.settings.samples;
  request.seed = options.settings.seed;
  if (options.settings.count_template) {
    KVLAB_ASSIGN_OR_RETURN(request.prompt_format,
                           PromptFormat::load(model_path(arguments.tokenizer)));
  }
  RulerSourceLoader loader(options.settings.paths);
  KVLAB_ASSIGN_OR_RETURN(const LoadedSources loaded, loader.load(*request.task));
  KVLAB_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::load(model_path(arguments.tokenizer)));
  KVLAB_ASSIGN_OR_RETURN(const std::vector<RulerItem> items,
                         generate_ruler(request, loaded.sources, *tokenizer));
  const std::string text = ruler_json_lines(items);
  if (arguments.out == "-") {
    fmt::print("{}", text);
    return absl::OkStatus();
  }
  KVLAB_RETURN_IF_ERROR(write_file(arguments.out, text));
  fmt::print(stderr, "{}: {} prompts of {} at length {} from {}\n", arguments.out, items.size(),
             request.task->name, request.length, loaded.name);
  return absl::OkStatus();
}

void add_ruler(CLI::App& data, CommandAction& action) {
  CLI::App* command = data.add_subcommand(
      "ruler", "RULER's prompts as JSON lines, byte for byte as NVIDIA's scripts write them.");
  const auto arguments = std::make_shared<RulerArguments>();
  RulerArguments& a = *arguments;
  command->add_option("--task", a.task, "niah_single_1 ... qa_2; see kvlab list benchmarks")
      ->required();
  command->add_option("--length", a.length, "Tokens of prompt and reply together")
      ->capture_default_str();
  command->add_option("--samples", a.samples, "Number of prompts")->capture_default_str();
  command->add_option("--seed", a.seed, "Seed of the random draws")->capture_default_str();
  command
      ->add_option("--tokenizer", a.tokenizer,
                   "Folder with the model's tokenizer.json, or a name in the cache")
      ->required();
  command->add_option("--template", a.format, "base: plain text; model: the model's own template")
      ->check(CLI::IsMember({"base", "model"}))
      ->capture_default_str();
  command->add_option("--essays", a.essays, "Folder with RULER_PaulGrahamEssays.txt, or a file");
  command->add_option("--squad", a.squad, "Folder with SQuAD 2.0 dev, or the file");
  command->add_option("--hotpotqa", a.hotpotqa, "Folder with HotpotQA dev distractor, or the file");
  command->add_option("--wordlists", a.wordlists, "Folder with wonderwords/nounlist.txt etc.");
  command->add_option("--punkt", a.punkt, "Folder with NLTK's punkt_tab, or its english folder");
  command->add_option("--out", a.out, "File to write; - for the terminal")->required();
  command->footer(
      "Folders that are not named are looked for in the cache (scripts/fetch_data.py). Without\n"
      "essays a free text takes their place.\n"
      "Examples:\n"
      "  kvlab data ruler --task vt --length 8192 --samples 20 --tokenizer MODEL --out vt.jsonl\n"
      "  kvlab data ruler --task qa_1 --length 4096 --tokenizer MODEL --squad dev-v2.0.json --out "
      "qa_1.jsonl");
  command->callback(
      [&action, arguments] { action = [arguments] { return write_ruler(*arguments); }; });
}

}  // namespace

void add_data_command(CLI::App& app, CommandAction& action) {
  CLI::App* data = app.add_subcommand("data", "Write benchmark prompts to files.");
  data->require_subcommand(1);
  add_ruler(*data, action);
}

}  // namespace kvlab
