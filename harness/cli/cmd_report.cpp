#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/report_data.h"
#include "reports/score_table.h"
#include "reports/writers.h"

namespace kvlab {
namespace {

struct ReportFlags {
  std::string database;
  std::string format = "text";
  std::vector<std::string> rows = {"method", "budget"};
  std::string columns = "task";
  std::vector<std::string> where;
  bool equal_samples = false;
};

absl::Status run_report(const ReportFlags& flags) {
  KVLAB_ASSIGN_OR_RETURN(const TableFormat format, parse_table_format(flags.format));
  ScoreTableOptions options;
  options.rows.clear();
  for (const std::string& name : flags.rows) {
    KVLAB_ASSIGN_OR_RETURN(const Field field, parse_field(name));
    options.rows.push_back(field);
  }
  KVLAB_ASSIGN_OR_RETURN(options.columns, parse_field(flags.columns));
  options.equal_samples = flags.equal_samples;
  KVLAB_ASSIGN_OR_RETURN(const ReportData data, load_report_data(flags.database, flags.where));
  KVLAB_ASSIGN_OR_RETURN(const std::vector<Table> tables, score_tables(data.scores, options));
  const std::string out = write_tables(tables, format, {.ansi_bold = ::isatty(STDOUT_FILENO) == 1});
  std::fwrite(out.data(), 1, out.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void add_report_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand("report", "Print tables of the results in a database");
  command->add_option("database", flags->database, "The results database")->required();
  command->add_option("--format", flags->format, "text, markdown, csv, latex or html")
      ->capture_default_str();
  command
      ->add_option("--rows", flags->rows,
                   "Fields that make rows: benchmark, model, protocol, dataset, question_aware, "
                   "length, task, method, budget")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--columns", flags->columns, "The field that makes columns")
      ->capture_default_str();
  command->add_option("--where", flags->where,
                      "Only cells with field=value[,value...]; also !=, and <, <=, >, >= for "
                      "length, budget and index (the sample's number); may be repeated");
  command->add_flag("--equal-samples", flags->equal_samples,
                    "Only samples that every row of a table has");
  command->footer(
      "Examples:\n"
      "  kvlab report results.sqlite\n"
      "  kvlab report results.sqlite --format markdown --where task=vt,fwe --where 'budget<=256'\n"
      "  kvlab report results.sqlite --rows method --columns budget\n"
      "  kvlab report results.sqlite --format latex > table.tex");
  command->callback([flags, &action] { action = [flags] { return run_report(*flags); }; });
}

}  // namespace kvlab
