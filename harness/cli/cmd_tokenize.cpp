// kvlab tokenize: a text file's token ids.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/text/text_file.h"
#include "harness/text/tokenizer.h"

namespace kvlab {
namespace {

struct TokenizeOptions {
  std::string model;
  std::string text_file;
  bool special = false;
};

absl::Status tokenize(const TokenizeOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::load(model_path(options.model)));
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_utf8_file(options.text_file));
  fmt::print("[{}]\n", fmt::join(tokenizer->encode(text, options.special), ", "));
  if (std::fflush(stdout) != 0) {
    return unavailable("cannot write the token ids to the standard output");
  }
  return {};
}

}  // namespace

void add_tokenize_command(CLI::App& app, CommandAction& action) {
  CLI::App* command = app.add_subcommand("tokenize", "Print a text's token ids as a JSON array");
  const auto options = std::make_shared<TokenizeOptions>();
  command
      ->add_option("--model", options->model,
                   "Folder with tokenizer.json, or a model's name in the cache")
      ->required();
  command->add_option("--text-file", options->text_file, "Text to tokenize (UTF-8)")->required();
  command->add_flag("--special", options->special,
                    "Add the tokenizer's special tokens, such as BOS");
  command->footer(
      "Examples:\n  kvlab tokenize --model SmolLM2-135M-Instruct --text-file prompt.txt --special");
  command->callback([options, &action] { action = [options] { return tokenize(*options); }; });
}

}  // namespace kvlab
