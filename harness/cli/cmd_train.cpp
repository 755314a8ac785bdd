// kvlab train: a LookaheadKV adapter from a recipe.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "harness/base/files.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/status.h"
#include "harness/cli/commands.h"
#include "harness/cli/threads_option.h"
#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "harness/model/model_fingerprint.h"
#include "harness/model/threads.h"
#include "harness/text/prompt_format.h"
#include "harness/text/tokenizer.h"
#include "methods/lookahead_kv/training/trainer.h"
#include "methods/lookahead_kv/training/training_log.h"

namespace kvlab {
namespace {

struct TrainFlags {
  std::string recipe;
  std::string out;
  double max_minutes = 0;
  int64_t reply_batch = 8;
  int threads = 0;
  std::string keep_passes;
  bool prompts_only = false;
};

// The model's own greedy replies: one prefill a prompt, all of a chunk decoded together.
absl::StatusOr<std::vector<std::vector<int32_t>>> write_replies(
    CausalLm& model, std::span<const TrainingSample> prompts) {
  std::vector<ArmRequest> requests;
  for (const TrainingSample& prompt : prompts) {
    KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<const PromptState> state,
                           model.prefill(prompt.prompt_ids, {}));
    requests.push_back({.cache = KvCache::full(state, prompt.max_new_tokens),
                        .first_logits = state->last_logits,
                        .max_new_tokens = prompt.max_new_tokens,
                        .min_new_tokens = 0,
                        .stop_ids = model.config().stop_ids});
  }
  KVLAB_ASSIGN_OR_RETURN(const std::vector<ArmReply> replies,
                         decode_greedy(model, std::move(requests)));
  std::vector<std::vector<int32_t>> ids;
  for (const ArmReply& reply : replies) {
    ids.push_back(reply.token_ids);
    if (reply.stop_reason == StopReason::kStopId) {
      ids.back().pop_back();
    }
  }
  return ids;
}

class ConsoleTrainingObserver final : public TrainingObserver {
 public:
  explicit ConsoleTrainingObserver(TrainingLog& log) : log_(log) {}

  void on_start(int64_t steps_done, int64_t total_steps) override {
    progress_.emplace("train", static_cast<double>(total_steps), static_cast<double>(steps_done),
                      stderr);
  }
  absl::Status on_step(const TrainingStep& step) override {
    progress_->advance(1, fmt::format("step {}: loss {:.4f}, {:.1f} s a step, {}", step.step,
                                      step.loss, step.seconds, held_out_));
    return log_.write(step);
  }
  absl::Status on_evaluation(const HeldOutEvaluation& evaluation) override {
    held_out_ = fmt::format("held out {:.4f}", evaluation.loss);
    for (const auto& [budget, recall] : evaluation.recall) {
      held_out_ += fmt::format(", recall@{} {:.3f}", budget, recall);
    }
    progress_->message(fmt::format("step {}: {}", evaluation.step, held_out_));
    return log_.write(evaluation);
  }
  void finish() { progress_->finish(); }

 private:
  TrainingLog& log_;
  std::optional<Progress> progress_;
  std::string held_out_;
};

absl::Status train(const TrainFlags& flags) {
  const std::filesystem::path out(flags.out);
  KVLAB_ASSIGN_OR_RETURN(const TrainingRecipe recipe, load_training_recipe(flags.recipe));
  KVLAB_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::load(recipe.model_dir));
  KVLAB_ASSIGN_OR_RETURN(const PromptFormat format, PromptFormat::load(recipe.model_dir));
  KVLAB_ASSIGN_OR_RETURN(const ModelConfig config, ModelConfig::load(recipe.model_dir));
  if (flags.threads > 0) {
    set_compute_threads(flags.threads);
  }
  fmt::print(stderr, "building prompts\n");
  KVLAB_ASSIGN_OR_RETURN(PromptSet prompts,
                         make_prompt_set(recipe, *tokenizer, format, config.max_positions));
  fmt::print(stderr, "{}\n", dump_json(prompts.facts, 1));
  KVLAB_RETURN_IF_ERROR(write_file(out / "prompts.json", dump_json(prompts.facts, 1) + "\n"));
  if (flags.prompts_only) {
    std::string lines;
    for (const TrainingSample& sample : prompts.samples) {
      lines += dump_json({{"kind", sample.kind},
                          {"tokens", sample.prompt_ids.size()},
                          {"prompt", tokenizer->decode(sample.prompt_ids, false)}}) +
               "\n";
    }
    return write_file(out / "prompts.jsonl", lines);
  }
  catch_interrupts();
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<CausalLm> base,
                         CausalLm::load(recipe.model_dir, {}));
  const std::filesystem::path replies =
      cache_dir() / "training" / fmt::format("replies-{}.jsonl", prompts.hash.substr(0, 16));
  {
    std::optional<Progress> progress;
    KVLAB_RETURN_IF_ERROR(complete_replies(
        replies, prompts, flags.reply_batch,
        [&](std::span<const TrainingSample> chunk) { return write_replies(*base, chunk); },
        [&](int64_t done, int64_t total) {
          if (!progress) {
            progress.emplace("replies", static_cast<double>(total),
                             static_cast<double>(done - flags.reply_batch), stderr);
          }
          progress->advance(static_cast<double>(flags.reply_batch), "");
        }));
  }
  if (interrupted()) {
    return absl::CancelledError("interrupted while writing replies; run again to go on");
  }
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<FrozenModel> frozen,
                         FrozenModel::load(recipe.model_dir, at::kFloat));
  KVLAB_ASSIGN_OR_RETURN(const auto log, TrainingLog::open(out / "training.sqlite"));
  KVLAB_RETURN_IF_ERROR(log->write_fact("recipe", dump_json(recipe.source)));
  KVLAB_RETURN_IF_ERROR(log->write_fact("data", dump_json(prompts.facts)));
  KVLAB_ASSIGN_OR_RETURN(const std::string fingerprint, weights_fingerprint(recipe.model_dir));
  FrozenPasses passes(*base, flags.keep_passes, fingerprint);
  ConsoleTrainingObserver observer(*log);
  KVLAB_ASSIGN_OR_RETURN(const TrainingOutcome outcome,
                         train_adapter(recipe, passes, *frozen, prompts.samples, prompts.hash, out,
                                       flags.max_minutes * 60, observer));
  if (!outcome.interrupted) {
    observer.finish();
  }
  KVLAB_ASSIGN_OR_RETURN(const Json chart, training_chart(out / "training.sqlite"));
  KVLAB_RETURN_IF_ERROR(write_file(out / "training.vl.json", dump_json(chart, 1) + "\n"));
  fmt::print(stderr, "{} of {} steps; adapter: {}\n", outcome.steps, outcome.total_steps,
             (out / "adapter.safetensors").string());
  if (interrupted()) {
    return absl::CancelledError("interrupted; run the same command to go on");
  }
  return absl::OkStatus();
}

}  // namespace

void add_train_command(CLI::App& app, CommandAction& action) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* command =
      app.add_subcommand("train", "Train a LookaheadKV adapter; run again to continue");
  command->add_option("recipe", flags->recipe, "Training recipe (JSON)")->required();
  command->add_option("--out", flags->out, "Folder for checkpoint, adapter and log")->required();
  command->add_option("--max-minutes", flags->max_minutes,
                      "Stop with a checkpoint after so long (0: when done)");
  command->add_option("--reply-batch", flags->reply_batch, "Prompts whose replies decode together")
      ->check(CLI::PositiveNumber);
  add_threads_option(*command, flags->threads);
  command->add_option("--keep-passes", flags->keep_passes,
                      "Folder that keeps what prompts and replies leave (about 23 KB a token for "
                      "SmolLM2): later passes over them take a fraction of the time");
  command->add_flag("--prompts-only", flags->prompts_only,
                    "Build the prompts, write prompts.json and prompts.jsonl, and stop");
  command->footer(
      "Examples:\n"
      "  kvlab train configs/train/smollm2.json --out runs/smollm2\n"
      "  kvlab train configs/train/smollm2.json --out runs/smollm2 --max-minutes 110");
  command->callback([flags, &action] { action = [flags] { return train(*flags); }; });
}

}  // namespace kvlab
