#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "harness/base/say.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/kernels/environment.h"

namespace {

// CLI11 says of a command that it does not know only that one is required.
std::string parse_message(const CLI::App* app, const CLI::Error& error) {
  std::string text = CLI::FailureMessage::simple(app, error);
  while (!app->get_subcommands().empty()) {  // those that were given
    app = app->get_subcommands().front();
  }
  const auto commands = app->get_subcommands({});
  if (error.get_name() == "RequiredError" && !commands.empty()) {
    text += "The commands are";
    for (const CLI::App* command : commands) {
      text += " " + command->get_name();
    }
    text += "\n";
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  // A file size limit must be an error of the write that meets it, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app("kvlab judges KV-cache eviction for large language models.", "kvlab");
  app.require_subcommand(1);
  app.failure_message(parse_message);
  kvlab::CommandAction action;
  kvlab::add_run_command(app, action);
  kvlab::add_report_command(app, action);
  kvlab::add_compare_command(app, action);
  kvlab::add_show_command(app, action);
  kvlab::add_merge_command(app, action);
  kvlab::add_export_command(app, action);
  kvlab::add_generate_command(app, action);
  kvlab::add_select_command(app, action);
  kvlab::add_list_command(app, action);
  kvlab::add_data_command(app, action);
  kvlab::add_score_command(app, action);
  kvlab::add_tokenize_command(app, action);
  kvlab::add_train_command(app, action);
  kvlab::add_bench_command(app, action);
  kvlab::add_predict_command(app, action);
  CLI11_PARSE(app, argc, argv);
  if (!action) {
    return 0;
  }
  absl::Status status;
  try {
    const std::string fault = kvlab::environment_fault();
    status = fault.empty() ? action() : absl::InvalidArgumentError(fault);
    if (status.ok()) {
      status = kvlab::print_output({});  // what is still on its way
    }
  } catch (const std::exception& error) {   // out of memory, output that cannot be written
    const std::string what = error.what();  // LibTorch's goes on with a stack trace
    status = absl::InternalError(what.substr(0, what.find("\nException raised from")));
  }
  if (!status.ok()) {
    kvlab::say(stderr, "kvlab: {}\n", kvlab::message_of(status));
    return 1;
  }
  return 0;
}
