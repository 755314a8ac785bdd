// kvlab predict: what methods would cost on models and devices that are not at hand.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "harness/base/status.h"
#include "harness/bench/prediction.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "reports/writers.h"

namespace kvlab {
namespace {

struct PredictFlags {
  std::vector<std::string> models = {"llama-3.1-8b"};
  std::vector<std::string> devices = {"h100"};
  std::vector<int64_t> lengths = {4096, 8192, 16384, 32768};
  int64_t budget = 128;
  std::string format = "text";
};

absl::Status predict(const PredictFlags& flags) {
  KVLAB_ASSIGN_OR_RETURN(const TableFormat format, parse_table_format(flags.format));
  if (flags.budget < 1) {
    return invalid_argument("--budget {}: give 1 or more", flags.budget);
  }
  for (const int64_t length : flags.lengths) {
    if (length < 1) {
      return invalid_argument("--lengths {}: give 1 or more", length);
    }
  }
  std::vector<Table> tables;
  for (const std::string& name : flags.models) {
    ModelConfig config;
    if (std::filesystem::exists(std::filesystem::path(name) / "config.json")) {
      KVLAB_ASSIGN_OR_RETURN(config, ModelConfig::load(name));
    } else {
      KVLAB_ASSIGN_OR_RETURN(config, known_shape(name));
    }
    for (const std::string& device_name : flags.devices) {
      KVLAB_ASSIGN_OR_RETURN(const Device device, find_device(device_name));
      tables.push_back(prediction_table(std::filesystem::path(name).filename().string(), config,
                                        device, flags.lengths, flags.budget));
    }
  }
  return print_output(write_tables(tables, format, {}));
}

}  // namespace

void add_predict_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* command =
      app.add_subcommand("predict", "What methods would cost on another device, by arithmetic");
  command
      ->add_option("--model", flags->models,
                   "smollm2-135m, llama-3.2-1b, llama-3.1-8b, llama-3.1-70b, llama-3.1-405b, or a "
                   "folder with a config.json; a list")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--device", flags->devices, "h100 or h200; a list")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--lengths", flags->lengths, "Prompt tokens; a list")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--budget", flags->budget, "Kept entries per layer and KV head")
      ->capture_default_str();
  command->add_option("--format", flags->format, "text, markdown, csv, latex or html")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  kvlab predict\n"
      "  kvlab predict --model llama-3.1-8b,llama-3.1-70b,llama-3.1-405b --device h100,h200 "
      "--lengths 4096,32768,131072,1048576\n"
      "  kvlab predict --model path/to/model --format markdown");
  command->callback([flags, &action] { action = [flags] { return predict(*flags); }; });
}

}  // namespace kvlab
