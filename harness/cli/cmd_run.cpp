// kvlab run: a sweep file into a results database.

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <optional>

#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/say.h"
#include "harness/base/status.h"
#include "harness/base/version.h"
#include "harness/cli/commands.h"
#include "harness/cli/process_info.h"
#include "harness/model/threads.h"
#include "harness/sweep/estimate.h"
#include "harness/sweep/plan.h"
#include "harness/sweep/runner.h"
#include "harness/sweep/sweep_config.h"
#include "results/store.h"

namespace kvlab {
namespace {

struct RunFlags {
  std::string sweep;
  std::string db;
  std::string filter;
  std::string shard = "1/1";
  std::string retry;
  std::string max_time;
  bool dry_run = false;
  bool list = false;
  std::optional<int64_t> show_prompt;
};

// "90", "90s", "30m", "8h".
absl::StatusOr<double> parse_duration(const std::string& text) {
  if (text.empty()) {
    return 0.0;
  }
  size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const double factor = unit == "h" ? 3600 : unit == "m" ? 60 : unit.empty() || unit == "s" ? 1 : 0;
  if (used == 0 || factor == 0 || !std::isfinite(value) || value <= 0) {
    return invalid_argument("--max-time \"{}\": give seconds, or a number with s, m or h", text);
  }
  return value * factor;
}

absl::StatusOr<PlanOptions> plan_options(const RunFlags& flags) {
  PlanOptions options;
  options.filter = flags.filter;
  char slash = 0;
  std::istringstream in(flags.shard);
  if (!(in >> options.shard >> slash >> options.num_shards) || slash != '/' || !in.eof() ||
      options.shard < 1 || options.shard > options.num_shards) {
    return invalid_argument("--shard \"{}\": give i/n with 1 <= i <= n, such as 2/4", flags.shard);
  }
  return options;
}

class ConsoleObserver final : public RunObserver {
 public:
  void on_start(const PlanSummary& summary) override {
    say(stderr, "{} cells on {} samples to run{}\n", summary.cells, summary.samples,
        summary.stored_cells > 0 ? fmt::format(", {} stored before", summary.stored_cells) : "");
    progress_.emplace("run", work_, 0.0, stderr);
  }
  void on_sample(double units, std::string_view what) override { progress_->advance(units, what); }
  void on_message(std::string_view text) override { progress_->message(text); }
  void set_work(double work) { work_ = work; }
  void finish() {
    if (progress_) {
      progress_->finish();
    }
  }

 private:
  double work_ = 0;
  std::optional<Progress> progress_;
};

double total_work(const SweepPlan& plan, const absl::flat_hash_set<std::string>& stored) {
  double work = 0;
  for (const ModelPlan& model : plan.models) {
    for (const PlannedSample& planned : model.samples) {
      int64_t arms = 0;
      bool any = false;
      for (const PlannedArm& arm : planned.arms) {
        const bool open = !stored.contains(arm.key);
        any = any || open;
        arms += open && arm.skip_reason.empty() ? 1 : 0;
      }
      if (any) {
        work += sample_work(planned.prompt_tokens, planned.sample.max_new_tokens, arms);
      }
    }
  }
  return work;
}

void print_list(const SweepPlan& plan) {
  for (const ModelPlan& model : plan.models) {
    for (const PlannedSample& planned : model.samples) {
      for (const PlannedArm& cell : planned.arms) {
        const Arm& arm = plan.arms[cell.arm];
        fmt::print("{}  {}  {}  {}{}{}\n", model.model.name, planned.sample.key, arm.method.label,
                   arm.budget_text(), arm.question_aware ? "" : "  question-unaware",
                   cell.skip_reason.empty() ? "" : "  skipped: " + cell.skip_reason);
      }
    }
  }
}

std::string readable_bytes(int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib >= 1024 ? fmt::format("{:.1f} GiB", mib / 1024) : fmt::format("{:.0f} MiB", mib);
}

// What decides whether scores are comparable, as the first of a protocol's prompts has it.
void print_protocol(const ModelPlan& model, const PlannedSample& planned) {
  const Sample& sample = planned.sample;
  const PromptFacts& facts = planned.facts;
  fmt::print("protocol        {}\n", dump_json(model.protocols[planned.protocol].json));
  fmt::print("sample          {}\n", sample.key);
  fmt::print("prompt tokens   {}{}; with the reply at most {} of the model's {} positions\n",
             planned.prompt_tokens,
             facts.truncated ? fmt::format(" (cut from {})", facts.tokens_before_truncation) : "",
             planned.prompt_tokens + sample.max_new_tokens, model.config.max_positions);
  fmt::print("BOS             {} at the start as expected, {} inside\n", facts.leading_bos,
             facts.inner_bos);
  fmt::print("chat template   {}\n", facts.chat_template ? "the model's" : "none");
  fmt::print("answer prefix   {}\n", dump_json(Json(sample.answer_prefix)));
  fmt::print("question        {}\n",
             has_question(sample) ? dump_json(Json(sample.prompt.substr(sample.question_begin)))
                                  : "not separate");
  fmt::print(
      "stop ids        {}{}\n", fmt::join(planned.stop_ids, " "),
      sample.stop_texts.empty() ? "" : ", for " + dump_json(Json(sample.stop_texts)) + " too");
  fmt::print("new tokens      {} to {}\n", sample.min_new_tokens, sample.max_new_tokens);
  fmt::print("text            SHA-256 {}, ends {}\n", facts.text_hash,
             dump_json(Json(facts.text_tail)));
}

absl::Status print_prompt(const SweepPlan& plan, int64_t index) {
  int64_t seen = 0;
  for (const ModelPlan& model : plan.models) {
    for (const PlannedSample& planned : model.samples) {
      if (seen++ != index) {
        continue;
      }
      KVLAB_ASSIGN_OR_RETURN(const BuiltPrompt prompt,
                             build_prompt(prompt_request(planned.sample, /*split_question=*/false),
                                          *model.tokenizer, model.format));
      print_protocol(model, planned);
      fmt::print("---\n{}\n", model.tokenizer->decode(prompt.token_ids, false));
      return absl::OkStatus();
    }
  }
  return invalid_argument("--show-prompt {}: the sweep has {} samples, counted from 0", index,
                          seen);
}

void print_dry_run(const SweepPlan& plan, const PlanSummary& summary,
                   const absl::flat_hash_set<std::string>& stored) {
  fmt::print("prefills          {}\n", summary.samples);
  fmt::print("prompt tokens     {} (longest {})\n", summary.prefill_tokens,
             summary.max_prompt_tokens);
  fmt::print("arms              {}\n", plan.arms.size());
  fmt::print("cells             {} to run, {} stored, {} skipped\n", summary.cells,
             summary.stored_cells, summary.skipped_cells);
  fmt::print("new tokens        {} at most\n", summary.max_new_tokens);
  const auto seconds = estimate_seconds(plan, stored);
  fmt::print("time              {}\n",
             seconds.ok() ? fmt::format("about {} on this machine, by a short trial; less where "
                                        "replies stop early, more with drafts",
                                        readable_duration(*seconds))
                          : "unknown: " + message_of(seconds.status()));
  const auto weights = weight_bytes(plan);
  fmt::print("memory            {} of weights, caches of {} at most, and what a prefill takes\n",
             weights.ok() ? readable_bytes(*weights) : "unknown size",
             readable_bytes(summary.peak_cache_bytes));
  // A row is about 2 KB; a kept position about one byte.
  fmt::print("database          about {}\n",
             readable_bytes(summary.cells * 2000 +
                            (plan.config.store_prompts ? summary.prefill_tokens * 5 : 0) +
                            (plan.config.store_selections ? summary.selected_entries : 0)));
  for (const ModelPlan& model : plan.models) {
    std::map<std::string, int64_t> reasons;
    for (const PlannedSample& planned : model.samples) {
      for (const PlannedArm& cell : planned.arms) {
        if (!cell.skip_reason.empty()) {
          ++reasons[cell.skip_reason];
        }
      }
    }
    for (const auto& [reason, count] : reasons) {
      fmt::print("skipped           {}: {}\n", count, reason);
    }
    for (size_t i = 0; i < model.protocols.size(); ++i) {
      const auto first = std::find_if(model.samples.begin(), model.samples.end(),
                                      [&](const PlannedSample& one) { return one.protocol == i; });
      if (first != model.samples.end()) {
        fmt::print("\n");
        print_protocol(model, *first);
      }
    }
  }
}

// The plan's cells that the database has as failed.
absl::StatusOr<int64_t> failed_cells(const SweepPlan& plan, const ResultStore& store) {
  KVLAB_ASSIGN_OR_RETURN(const auto stored, store.stored_keys(/*retry_failed=*/false));
  KVLAB_ASSIGN_OR_RETURN(const auto good, store.stored_keys(/*retry_failed=*/true));
  int64_t failed = 0;
  for (const ModelPlan& model : plan.models) {
    for (const PlannedSample& planned : model.samples) {
      for (const PlannedArm& arm : planned.arms) {
        failed += stored.contains(arm.key) && !good.contains(arm.key) ? 1 : 0;
      }
    }
  }
  return failed;
}

absl::Status run_sweep(const RunFlags& flags) {
  KVLAB_ASSIGN_OR_RETURN(const PlanOptions options, plan_options(flags));
  KVLAB_ASSIGN_OR_RETURN(const double max_time_s, parse_duration(flags.max_time));
  KVLAB_ASSIGN_OR_RETURN(const SweepConfig config, load_sweep_config(flags.sweep));
  KVLAB_ASSIGN_OR_RETURN(const SweepPlan plan, make_plan(config, options));
  if (flags.list) {
    print_list(plan);
    return absl::OkStatus();
  }
  if (flags.show_prompt) {
    return print_prompt(plan, *flags.show_prompt);
  }
  if (config.threads > 0) {
    set_compute_threads(config.threads);
  }
  const RunOptions run_options{.retry_failed = !flags.retry.empty(), .max_time_s = max_time_s};
  if (flags.dry_run) {
    absl::flat_hash_set<std::string> stored;
    if (!flags.db.empty() && std::filesystem::exists(flags.db)) {
      KVLAB_ASSIGN_OR_RETURN(const auto store,
                             ResultStore::open(flags.db, ResultStore::Mode::kRead));
      KVLAB_ASSIGN_OR_RETURN(stored, store->stored_keys(run_options.retry_failed));
    }
    print_dry_run(plan, summarize(plan, stored), stored);
    return absl::OkStatus();
  }
  if (flags.db.empty()) {
    return invalid_argument("--db FILE is needed: where results go");
  }
  KVLAB_ASSIGN_OR_RETURN(const auto store, ResultStore::open(flags.db, ResultStore::Mode::kCreate));
  KVLAB_ASSIGN_OR_RETURN(const int64_t run_id,
                         store->begin_run({.version = std::string(kvlab_version()),
                                           .git_commit = std::string(git_commit()),
                                           .build_type = std::string(build_type()),
                                           .machine = machine_info(),
                                           .libraries = library_versions(),
                                           .config = config.source,
                                           .command_line = command_line(),
                                           .shard = flags.shard}));
  catch_interrupts();
  ConsoleObserver observer;
  KVLAB_ASSIGN_OR_RETURN(const auto stored, store->stored_keys(run_options.retry_failed));
  observer.set_work(total_work(plan, stored));
  SweepRunner runner(plan, *store, run_options, observer);
  const absl::StatusOr<RunOutcome> outcome = runner.run();
  if (!outcome.ok()) {
    (void)store->finish_run("failed: " + message_of(outcome.status()));
    return outcome.status();
  }
  KVLAB_RETURN_IF_ERROR(store->finish_run(outcome->interrupted   ? "interrupted"
                                          : outcome->out_of_time ? "out of time"
                                                                 : "done"));
  if (!outcome->interrupted && !outcome->out_of_time) {
    observer.finish();
  }
  say(stderr, "run {}: {} cells on {} samples stored in {}{}{}\n", run_id, outcome->cells,
      outcome->samples, flags.db,
      outcome->failed > 0 ? fmt::format(", {} failed", outcome->failed) : "",
      outcome->skipped > 0 ? fmt::format(", {} skipped", outcome->skipped) : "");
  if (outcome->out_of_time) {
    say(stderr, "stopped after --max-time {}; run the same command to go on\n", flags.max_time);
  }
  if (outcome->interrupted) {
    return absl::CancelledError("interrupted; run the same command to go on");
  }
  KVLAB_ASSIGN_OR_RETURN(const int64_t failed, failed_cells(plan, *store));
  if (failed > 0) {
    return failed_precondition(
        "{} of the sweep's cells failed (kvlab report {} says why); --retry failed runs them again",
        failed, flags.db);
  }
  return absl::OkStatus();
}

}  // namespace

void add_run_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Run a sweep file; run again to continue it");
  command->add_option("sweep", flags->sweep, "Sweep file (JSON)")->required();
  command->add_option("--db", flags->db, "Results database (SQLite), made if absent");
  command->add_option(
      "--filter", flags->filter,
      "Only cells whose benchmark/task/length/method or label/budget matches this regular "
      "expression");
  command->add_option("--shard", flags->shard, "Part i of n: every n-th sample (default 1/1)");
  command->add_option("--retry", flags->retry, "\"failed\": run failed cells again")
      ->check(CLI::IsMember({"failed"}));
  command->add_option("--max-time", flags->max_time, "Stop after so long: 90s, 30m, 8h");
  command->add_flag("--dry-run", flags->dry_run, "Say what would run, and what it takes");
  command->add_flag("--list", flags->list, "List the cells");
  command->add_option("--show-prompt", flags->show_prompt,
                      "Print the N-th sample's prompt and protocol facts");
  command->footer(
      "Examples:\n"
      "  kvlab run configs/quickstart.json --db quickstart.sqlite\n"
      "  kvlab run configs/quickstart.json --dry-run\n"
      "  kvlab run big.json --shard 2/4 --db part2.sqlite --max-time 8h");
  command->callback([flags, &action] { action = [flags] { return run_sweep(*flags); }; });
}

}  // namespace kvlab
