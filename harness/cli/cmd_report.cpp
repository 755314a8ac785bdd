#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iterator>
#include <memory>

#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/report_data.h"
#include "reports/bench_tables.h"
#include "reports/growth.h"
#include "reports/html_report.h"
#include "reports/layouts.h"
#include "reports/run_facts.h"
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
  std::string layout;
  std::string html;
  std::string sample;
};

// The page has the tables asked for, what the methods cost, and every chart the data allows.
absl::Status write_page(const ReportFlags& flags, const ReportData& data,
                        std::vector<Table> tables) {
  const Database& db = data.store->database();
  if (flags.layout != "efficiency") {
    KVLAB_ASSIGN_OR_RETURN(std::vector<Table> costs,
                           layout_tables("efficiency", db, data.scores, {}));
    std::move(costs.begin(), costs.end(), std::back_inserter(tables));
  }
  KVLAB_ASSIGN_OR_RETURN(const ChartSet charts, all_charts(db, data.scores, flags.sample));
  const std::string title =
      "kvlab results: " + std::filesystem::path(flags.database).filename().string();
  HtmlReportOptions page;
  KVLAB_ASSIGN_OR_RETURN(page.facts, run_facts(db));
  KVLAB_ASSIGN_OR_RETURN(const HtmlReportSummary summary,
                         write_html_report(flags.html, title, tables, charts.charts, page));
  fmt::print("{}: {} tables, {} of {} charts drawn{}\n", flags.html, summary.tables, summary.drawn,
             summary.charts,
             summary.charts > 0
                 ? fmt::format("; SVG, PDF and specifications in {}", summary.chart_folder.string())
                 : "");
  if (!summary.missing.empty()) {
    fmt::print("charts left out: {}\n", summary.missing);
  }
  for (const std::string& note : charts.notes) {
    fmt::print("{}\n", note);
  }
  return absl::OkStatus();
}

absl::Status print_tables(const std::vector<Table>& tables, TableFormat format) {
  return print_output(write_tables(tables, format, {.ansi_bold = ::isatty(STDOUT_FILENO) == 1}));
}

// What `kvlab bench` measured, where the layout shows that and there is some; and what sweeps
// recorded about their cost. False: nothing was measured, and the layout is one of sweeps too.
absl::StatusOr<bool> report_bench(const ReportFlags& flags, TableFormat format) {
  if (flags.layout != "efficiency" && flags.layout != "growth") {
    return false;
  }
  KVLAB_ASSIGN_OR_RETURN(const auto store,
                         ResultStore::open(flags.database, ResultStore::Mode::kRead));
  KVLAB_ASSIGN_OR_RETURN(const BenchData bench, load_bench(store->database()));
  std::vector<Table> tables;
  if (flags.layout == "growth") {
    if (!flags.where.empty()) {
      return invalid_argument("--where chooses among a sweep's cells; growth is of measurements");
    }
    tables = growth_tables(bench);
    if (tables.empty()) {
      return not_found(
          "{}: nothing measured at two lengths or numbers of arms; `kvlab bench` does that",
          flags.database);
    }
  } else if (bench.rows.empty()) {
    return false;
  } else {
    tables = bench_tables(bench);
    const auto data = load_report_data(flags.database, flags.where);
    if (data.ok()) {
      KVLAB_ASSIGN_OR_RETURN(
          std::vector<Table> costs,
          layout_tables("efficiency", data->store->database(), data->scores, {}));
      std::move(costs.begin(), costs.end(), std::back_inserter(tables));
    } else if (!absl::IsNotFound(data.status())) {
      return data.status();
    }
  }
  if (flags.html.empty()) {
    KVLAB_RETURN_IF_ERROR(print_tables(tables, format));
    return true;
  }
  const std::string title =
      "kvlab bench: " + std::filesystem::path(flags.database).filename().string();
  KVLAB_ASSIGN_OR_RETURN(const HtmlReportSummary summary,
                         write_html_report(flags.html, title, tables, growth_charts(bench)));
  fmt::print("{}: {} tables, {} of {} charts drawn\n", flags.html, summary.tables, summary.drawn,
             summary.charts);
  if (!summary.missing.empty()) {
    fmt::print("charts left out: {}\n", summary.missing);
  }
  return true;
}

absl::Status run_report(const ReportFlags& flags) {
  KVLAB_ASSIGN_OR_RETURN(const TableFormat format, parse_table_format(flags.format));
  KVLAB_ASSIGN_OR_RETURN(const bool done, report_bench(flags, format));
  if (done) {
    return absl::OkStatus();
  }
  ScoreTableOptions options;
  options.rows.clear();
  for (const std::string& name : flags.rows) {
    KVLAB_ASSIGN_OR_RETURN(const Field field, parse_field(name));
    options.rows.push_back(field);
  }
  KVLAB_ASSIGN_OR_RETURN(options.columns, parse_field(flags.columns));
  options.equal_samples = flags.equal_samples;
  KVLAB_ASSIGN_OR_RETURN(const ReportData data,
                         load_report_data(flags.database, flags.where,
                                          /*with_extra=*/!flags.html.empty()));
  KVLAB_ASSIGN_OR_RETURN(std::vector<Table> tables,
                         layout_tables(flags.layout, data.store->database(), data.scores, options));
  if (!flags.html.empty()) {
    return write_page(flags, data, std::move(tables));
  }
  return print_tables(tables, format);
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
  command->add_option("--layout", flags->layout,
                      "Tables made ready: ruler-by-length, longbench-by-budget, efficiency (what "
                      "methods cost, as `kvlab bench` measured and sweeps recorded) or growth "
                      "(exponents); takes the place of --rows and --columns");
  command->add_option("--html", flags->html,
                      "Write one self-contained page with tables and charts, and a folder with the "
                      "charts as SVG, PDF and Vega-Lite beside it");
  command->add_option("--sample", flags->sample,
                      "With --html: the sample whose kept positions are drawn");
  command->footer(
      "Examples:\n"
      "  kvlab report results.sqlite\n"
      "  kvlab report results.sqlite --format markdown --where task=vt,fwe --where 'budget<=256'\n"
      "  kvlab report results.sqlite --rows method --columns budget\n"
      "  kvlab report results.sqlite --layout ruler-by-length\n"
      "  kvlab report results.sqlite --html report.html\n"
      "  kvlab report results.sqlite --format latex > table.tex");
  command->callback([flags, &action] { action = [flags] { return run_report(*flags); }; });
}

}  // namespace kvlab
