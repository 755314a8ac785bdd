// The subcommands of `kvlab`. A new one is one file cmd_NAME.cpp and one line in main.cpp.
#pragma once

#include <absl/status/status.h>

#include <functional>

namespace CLI {
class App;
}

namespace kvlab {

// What the chosen subcommand does; set by its parser callback, run by main.
using CommandAction = std::function<absl::Status()>;

void add_bench_command(CLI::App& app, CommandAction& action);
void add_compare_command(CLI::App& app, CommandAction& action);
void add_data_command(CLI::App& app, CommandAction& action);
void add_export_command(CLI::App& app, CommandAction& action);
void add_generate_command(CLI::App& app, CommandAction& action);
void add_list_command(CLI::App& app, CommandAction& action);
void add_merge_command(CLI::App& app, CommandAction& action);
void add_predict_command(CLI::App& app, CommandAction& action);
void add_report_command(CLI::App& app, CommandAction& action);
void add_run_command(CLI::App& app, CommandAction& action);
void add_score_command(CLI::App& app, CommandAction& action);
void add_select_command(CLI::App& app, CommandAction& action);
void add_show_command(CLI::App& app, CommandAction& action);
void add_tokenize_command(CLI::App& app, CommandAction& action);
void add_train_command(CLI::App& app, CommandAction& action);

}  // namespace kvlab
