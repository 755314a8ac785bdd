// kvlab score: scores of stored replies, without a model.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "benchmarks/longbench/score_folder.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"

namespace kvlab {
namespace {

struct ScoreLongBench {
  std::string folder;
  std::string out;
  std::string details;
  CodeRatio code_ratio = CodeRatio::kDifflib;
  int64_t rouge_recursion_limit = LongBenchScoring().rouge_recursion_limit;
  bool by_length = false;
};

const std::map<std::string, CodeRatio>& code_ratios() {
  static const std::map<std::string, CodeRatio> ratios = {{"difflib", CodeRatio::kDifflib},
                                                          {"levenshtein", CodeRatio::kLevenshtein}};
  return ratios;
}

std::string code_ratio_name(CodeRatio ratio) {
  return ratio == CodeRatio::kDifflib ? "difflib" : "levenshtein";
}

Json settings_json(const ScoreLongBench& command) {
  return {{"code_ratio", code_ratio_name(command.code_ratio)},
          {"rouge_recursion_limit", command.rouge_recursion_limit},
          {"first_line", "after-newlines"}};
}

std::string score_text(const LongBenchFileScore& file) {
  if (!file.by_length) {
    return fmt::format("{:7.2f}", file.percent);
  }
  std::string text;
  for (size_t i = 0; i < kLongBenchBuckets.size(); ++i) {
    const std::string percent =
        file.bucket_percent[i] ? fmt::format("{:.2f}", *file.bucket_percent[i]) : "-";
    text += fmt::format("{:>7} ({} {})", percent, kLongBenchBuckets[i], file.bucket_count[i]);
  }
  return text;
}

Json details_json(const std::vector<LongBenchFileScore>& files, const ScoreLongBench& command) {
  Json tasks = Json::object();
  for (const LongBenchFileScore& file : files) {
    tasks[file.name] = {{"metric", metric_name(file.metric)},
                        {"count", file.scores.size()},
                        {"scores", file.scores}};
  }
  return {{"settings", settings_json(command)}, {"tasks", std::move(tasks)}};
}

absl::Status score_longbench(const ScoreLongBench& command) {
  namespace fs = std::filesystem;
  if (fs::path(command.details).lexically_normal() == fs::path(command.out).lexically_normal()) {
    return invalid_argument("--out and --details are both {}: name two files", command.out);
  }
  const ScoreFolderOptions options = {
      .scoring = {.first_line = FirstLine::kAfterNewlines,
                  .code_ratio = command.code_ratio,
                  .rouge_recursion_limit = command.rouge_recursion_limit},
      .by_length = command.by_length};
  KVLAB_ASSIGN_OR_RETURN(const std::vector<LongBenchFileScore> files,
                         score_longbench_folder(command.folder, options));
  fmt::print("{:<22} {:<16} {:>5}  score\n", "task", "metric", "n");
  for (const LongBenchFileScore& file : files) {
    fmt::print("{:<22} {:<16} {:>5}{}\n", file.name, metric_name(file.metric), file.scores.size(),
               score_text(file));
  }
  fmt::print("code ratio {}, ROUGE recursion limit {}\n", code_ratio_name(command.code_ratio),
             command.rouge_recursion_limit);
  if (!command.details.empty()) {
    KVLAB_RETURN_IF_ERROR(
        write_file(command.details, dump_json(details_json(files, command), 1) + "\n"));
  }
  return write_file(command.out, dump_json(longbench_result_json(files), 4) + "\n");
}

}  // namespace

void add_score_command(CLI::App& app, CommandAction& action) {
  CLI::App* const score = app.add_subcommand("score", "Score stored replies, without a model");
  score->require_subcommand(1);
  CLI::App* const longbench = score->add_subcommand(
      "longbench", "Score a folder of LongBench prediction files as LongBench's eval.py does");
  const auto command = std::make_shared<ScoreLongBench>();
  longbench->add_option("folder", command->folder, "Folder with qasper.jsonl, qasper_e.jsonl, ...")
      ->required();
  longbench
      ->add_option("--out", command->out, "Where to write the scores (LongBench's result.json)")
      ->required();
  longbench
      ->add_option("--code-ratio", command->code_ratio,
                   "What fuzz.ratio stands for: difflib (as published) or levenshtein")
      ->transform(CLI::CheckedTransformer(code_ratios()));
  longbench
      ->add_option("--rouge-recursion-limit", command->rouge_recursion_limit,
                   "Python's limit, which makes ROUGE-L of very long sentences 0; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  longbench->add_flag("--e", command->by_length,
                      "All files are LongBench-E's: report by length (files *_e.jsonl always are)");
  longbench->add_option("--details", command->details,
                        "Also write every reply's score and the settings to this file");
  longbench->footer(
      "Examples:\n"
      "  kvlab score longbench pred/my-model --out result.json\n"
      "  kvlab score longbench pred_e/my-model --e --out result.json --code-ratio levenshtein");
  longbench->callback(
      [command, &action] { action = [command] { return score_longbench(*command); }; });
}

}  // namespace kvlab
