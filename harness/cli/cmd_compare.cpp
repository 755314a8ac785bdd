#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
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

constexpr int kReplyWidth = 300;

// A sample with both replies, one line each; for Markdown as a list.
absl::StatusOr<std::string> sample_text(const Database& db, const DifferingSample& sample,
                                        bool markdown) {
  KVLAB_ASSIGN_OR_RETURN(const std::string baseline, reply_of(db, sample.baseline_row));
  KVLAB_ASSIGN_OR_RETURN(const std::string candidate, reply_of(db, sample.candidate_row));
  const auto reply = [&](const std::string& text) {
    const std::string line = truncate_to_width(plain_line(text), kReplyWidth);
    return markdown ? escape_markdown(line) : line;
  };
  if (markdown) {
    return fmt::format("- {}\n  - baseline {:.1f}: {}\n  - candidate {:.1f}: {}\n",
                       escape_markdown(sample.sample), sample.baseline_score, reply(baseline),
                       sample.candidate_score, reply(candidate));
  }
  return fmt::format("{}\n  baseline  {:5.1f}: {}\n  candidate {:5.1f}: {}\n",
                     plain_line(sample.sample), sample.baseline_score, reply(baseline),
                     sample.candidate_score, reply(candidate));
}

// Text and Markdown: the tables, under each the samples that differ most, and the settings.
absl::StatusOr<std::string> full_text(const Database& db, const ScoreData& scores,
                                      const std::vector<Comparison>& comparisons,
                                      const CompareOptions& options, bool markdown) {
  std::string out;
  for (const Comparison& comparison : comparisons) {
    out += (out.empty() ? "" : "\n") +
           (markdown ? write_markdown(comparison.table) : write_text(comparison.table));
    if (!comparison.samples.empty()) {
      out += markdown ? "\n#### Where they differ most\n\n" : "\nWhere they differ most:\n";
    }
    for (const DifferingSample& sample : comparison.samples) {
      KVLAB_ASSIGN_OR_RETURN(const std::string text, sample_text(db, sample, markdown));
      out += text;
    }
  }
  out += markdown ? "\n#### Settings that differ\n\n" : "\nSettings that differ";
  out += markdown ? "" : " (baseline -> candidate):\n";
  for (const std::string& line : differing_settings(scores, options)) {
    out += markdown ? "- " + escape_markdown(line) + "\n" : "  " + plain_line(line) + "\n";
  }
  return out;
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
  if (format == TableFormat::kText || format == TableFormat::kMarkdown) {
    KVLAB_ASSIGN_OR_RETURN(out, full_text(data.store->database(), data.scores, comparisons,
                                          flags.options, format == TableFormat::kMarkdown));
  } else {
    std::vector<Table> tables;
    for (const Comparison& comparison : comparisons) {
      tables.push_back(comparison.table);
    }
    out = write_tables(tables, format);
  }
  return print_output(out);
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
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--seed", flags->options.seed, "Seed of resampling")->capture_default_str();
  command
      ->add_option("--differing", flags->options.examples,
                   "Samples to print where the two differ most, for each table")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command->footer(
      "Examples:\n"
      "  kvlab compare results.sqlite --baseline snapkv --candidate laq\n"
      "  kvlab compare results.sqlite --baseline full --candidate lookahead_kv --budget 128\n"
      "  kvlab compare results.sqlite --baseline snapkv --candidate h2o --where task=vt");
  command->callback([flags, &action] { action = [flags] { return run_compare(*flags); }; });
}

}  // namespace kvlab
