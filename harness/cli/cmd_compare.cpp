#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/report_data.h"
#include "reports/compare.h"
#include "reports/escape.h"
#include "reports/writers.h"

namespace kvlab {
namespace {

struct CompareFlags {
  std::string database;
  std::string format = "text";
  std::string budget;
  std::vector<std::string> where;
  CompareOptions options;
};

absl::StatusOr<std::string> reply_of(const Database& db, int64_t row) {
  KVLAB_ASSIGN_OR_RETURN(Statement select,
                         db.prepare("SELECT reply FROM replies WHERE result_id = ?"));
  select.bind(1, row);
  KVLAB_ASSIGN_OR_RETURN(const bool found, select.step());
  return found ? select.text(0) : std::string();
}

absl::StatusOr<std::string> sample_text(const Database& db, const DifferingSample& sample) {
  KVLAB_ASSIGN_OR_RETURN(const std::string baseline, reply_of(db, sample.baseline_row));
  KVLAB_ASSIGN_OR_RETURN(const std::string candidate, reply_of(db, sample.candidate_row));
  constexpr int kWidth = 300;
  return fmt::format("{}\n  baseline  {:5.1f}: {}\n  candidate {:5.1f}: {}\n",
                     plain_line(sample.sample), sample.baseline_score,
                     truncate_to_width(plain_line(baseline), kWidth), sample.candidate_score,
                     truncate_to_width(plain_line(candidate), kWidth));
}

absl::Status run_compare(CompareFlags flags) {
  KVLAB_ASSIGN_OR_RETURN(const TableFormat format, parse_table_format(flags.format));
  if (!flags.budget.empty()) {
    flags.where.push_back("budget=" + flags.budget);
  }
  KVLAB_ASSIGN_OR_RETURN(const ReportData data, load_report_data(flags.database, flags.where));
  KVLAB_ASSIGN_OR_RETURN(const std::vector<Comparison> comparisons,
                         compare_methods(data.scores, flags.options));
  std::string out;
  std::vector<Table> tables;
  for (const Comparison& comparison : comparisons) {
    tables.push_back(comparison.table);
  }
  if (format != TableFormat::kText) {
    out = write_tables(tables, format);
  } else {
    for (const Comparison& comparison : comparisons) {
      out += (out.empty() ? "" : "\n") + write_text(comparison.table);
      out += comparison.samples.empty() ? "" : "\nWhere they differ most:\n";
      for (const DifferingSample& sample : comparison.samples) {
        KVLAB_ASSIGN_OR_RETURN(const std::string text, sample_text(data.store->database(), sample));
        out += text;
      }
    }
    out += "\nSettings that differ (baseline -> candidate):\n";
    for (const std::string& line : differing_settings(data.scores, flags.options)) {
      out += "  " + plain_line(line) + "\n";
    }
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void add_compare_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<CompareFlags>();
  CLI::App* command =
      app.add_subcommand("compare", "Compare two methods on the samples that both have");
  command->add_option("database", flags->database, "The results database")->required();
  command->add_option("--baseline", flags->options.baseline, "The method to compare with")
      ->required();
  command->add_option("--candidate", flags->options.candidate, "The method to judge")->required();
  command->add_option("--budget", flags->budget, "Only this budget, or several with commas");
  command->add_option("--where", flags->where, "Only cells with field=value, as for report");
  command->add_option("--format", flags->format, "text, markdown, csv, latex or html")
      ->capture_default_str();
  command->add_option("--resamples", flags->options.resamples, "Bootstrap resamples")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "Seed of resampling")->capture_default_str();
  command
      ->add_option("--differing", flags->options.examples,
                   "Samples to print where the two differ most, for each table")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  kvlab compare results.sqlite --baseline snapkv --candidate laq\n"
      "  kvlab compare results.sqlite --baseline full --candidate lookahead_kv --budget 128\n"
      "  kvlab compare results.sqlite --baseline snapkv --candidate h2o --where task=vt");
  command->callback([flags, &action] { action = [flags] { return run_compare(*flags); }; });
}

}  // namespace kvlab
