#include "methods/lookahead_kv/training/trainer.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "datasets/training/seeded_random.h"
#include "harness/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/base/status.h"
#include "methods/lookahead_kv/training/attention_target.h"
#include "methods/lookahead_kv/training/optimizer.h"

namespace kvlab {
namespace {

// The order of training samples: a fresh shuffle for every pass, known from the seed alone, so that
// a resumed run sees what an unbroken one would.
class SampleOrder final {
 public:
  SampleOrder(size_t count, uint64_t seed) : count_(count), seed_(seed) {}

  size_t at(int64_t draw) {
    const int64_t pass = draw / static_cast<int64_t>(count_);
    if (pass != pass_) {
      order_.resize(count_);
      std::iota(order_.begin(), order_.end(), size_t{0});
      SeededRandom random(seed_ * 1'000'003 + static_cast<uint64_t>(pass));
      random.shuffle(order_);
      pass_ = pass;
    }
    return order_[static_cast<size_t>(draw % static_cast<int64_t>(count_))];
  }

 private:
  size_t count_;
  uint64_t seed_;
  int64_t pass_ = -1;
  std::vector<size_t> order_;
};

absl::StatusOr<std::shared_ptr<LookaheadAdapter>> first_adapter(const TrainingRecipe& recipe,
                                                                const FrozenModel& frozen) {
  if (!recipe.start_from.empty()) {
    KVLAB_ASSIGN_OR_RETURN(auto adapter,
                           LookaheadAdapter::load(recipe.start_from, frozen.config, {}));
    const LookaheadShape& shape = adapter->shape();
    if (shape.num_tokens != recipe.shape.num_tokens || shape.rank != recipe.shape.rank ||
        shape.alpha != recipe.shape.alpha || shape.targets != recipe.shape.targets) {
      return invalid_argument(
          "{}: asks for {} tokens, rank {}, alpha {} and {} targets, but start_from {} has {}, {}, "
          "{} and {}",
          recipe.path.string(), recipe.shape.num_tokens, recipe.shape.rank, recipe.shape.alpha,
          recipe.shape.targets.size(), recipe.start_from.string(), shape.num_tokens, shape.rank,
          shape.alpha, shape.targets.size());
    }
    return adapter;
  }
  return LookaheadAdapter::initialise(
      frozen.config, recipe.shape,
      recipe.token_init == "embedding" ? frozen.weights.embedding : at::Tensor(), recipe.init_seed);
}

absl::StatusOr<HeldOutEvaluation> evaluate(const TrainingRecipe& recipe, FrozenPasses& passes,
                                           FrozenModel& frozen, const LookaheadAdapter& adapter,
                                           std::span<const TrainingSample> held_out, int64_t step) {
  HeldOutEvaluation evaluation{.step = step, .loss = 0, .recall = {}};
  std::vector<double> recall(recipe.recall_budgets.size(), 0);
  for (const TrainingSample& sample : held_out) {
    KVLAB_ASSIGN_OR_RETURN(const FrozenPass pass,
                           passes.get(sample, adapter.tokens().scalar_type()));
    const SampleLoss one =
        sample_loss(pass, frozen, adapter, /*backward=*/false, /*weight=*/1, recipe.recall_budgets);
    evaluation.loss += one.loss / static_cast<double>(held_out.size());
    for (size_t i = 0; i < recall.size(); ++i) {
      recall[i] += one.recall[i] / static_cast<double>(held_out.size());
    }
  }
  for (size_t i = 0; i < recall.size(); ++i) {
    evaluation.recall.emplace_back(recipe.recall_budgets[i], recall[i]);
  }
  return evaluation;
}

// What an adapter file says of its making: this stage, and the one it went on from.
std::map<std::string, std::string> origin_of(const TrainingRecipe& recipe,
                                             const std::string& data_hash,
                                             const LookaheadAdapter& adapter) {
  std::map<std::string, std::string> origin = {
      {"base_model", std::filesystem::weakly_canonical(recipe.model_dir).filename().string()},
      {"recipe", dump_json(recipe.source)},
      {"recipe_hash", recipe.hash},
      {"data_hash", data_hash}};
  if (!recipe.start_from.empty()) {
    origin["start_from_hash"] = adapter.content_hash();
    origin["start_from"] = dump_json(Json(adapter.metadata()));
  }
  return origin;
}

}  // namespace

SampleLoss sample_loss(const FrozenPass& pass, FrozenModel& frozen, const LookaheadAdapter& adapter,
                       bool backward, double weight, const std::vector<int64_t>& recall_budgets) {
  SampleLoss result;
  result.recall.assign(recall_budgets.size(), 0);
  const auto layers = static_cast<double>(frozen.config.num_layers);
  const double scale = 1.0 / (layers * static_cast<double>(frozen.config.num_heads));
  // Copies in the rows' precision: what a prefill made can't be kept for a gradient.
  const auto prompt = [&, dtype = adapter.tokens().scalar_type()](int64_t layer) {
    const PromptLayer& all = pass.prompt[static_cast<size_t>(layer)];
    return PromptLayer{.keys = all.keys.to(dtype, /*non_blocking=*/false, /*copy=*/true),
                       .values = all.values.to(dtype, /*non_blocking=*/false, /*copy=*/true)};
  };
  at::Tensor total;
  const auto visit = [&](int64_t layer, const RowLayer& rows) {
    const at::Tensor& target = pass.targets[static_cast<size_t>(layer)];
    const at::Tensor divergence = attention_divergence(target, rows.scores) * scale;
    total = total.defined() ? total + divergence : divergence;
    for (size_t i = 0; i < recall_budgets.size(); ++i) {
      result.recall[i] += attention_recall(target, rows.scores.detach(), frozen.config.num_kv_heads,
                                           recall_budgets[i]) /
                          layers;
    }
  };
  const int64_t prompt_len = pass.targets.front().size(1);
  if (backward) {
    run_rows_with_gradient(frozen, &adapter, adapter.tokens(), prompt_len, prompt, visit);
    (total * weight).backward();
  } else {
    const c10::NoGradGuard no_grad;
    run_rows_with_gradient(frozen, &adapter, adapter.tokens(), prompt_len, prompt, visit);
  }
  result.loss = total.item<double>();
  return result;
}

absl::StatusOr<SampleLoss> sample_loss(CausalLm& base, FrozenModel& frozen,
                                       const LookaheadAdapter& adapter,
                                       const TrainingSample& sample, bool backward, double weight,
                                       const std::vector<int64_t>& recall_budgets) {
  KVLAB_ASSIGN_OR_RETURN(const FrozenPass pass,
                         run_frozen_pass(base, sample, adapter.tokens().scalar_type()));
  return sample_loss(pass, frozen, adapter, backward, weight, recall_budgets);
}

absl::StatusOr<TrainingOutcome> train_adapter(const TrainingRecipe& recipe, FrozenPasses& passes,
                                              FrozenModel& frozen,
                                              const std::vector<TrainingSample>& samples,
                                              const std::string& data_hash,
                                              const std::filesystem::path& out_dir,
                                              double deadline_s, TrainingObserver& observer) {
  const auto held = std::min<size_t>(static_cast<size_t>(recipe.held_out), samples.size());
  const size_t count = samples.size() - held;
  if (count == 0) {
    return invalid_argument("{}: {} prompts, of which {} are held out: nothing to train on",
                            recipe.path.string(), samples.size(), held);
  }
  const std::span<const TrainingSample> training(samples.data(), count);
  const std::span<const TrainingSample> held_out(samples.data() + count, held);
  KVLAB_ASSIGN_OR_RETURN(const auto adapter, first_adapter(recipe, frozen));
  adapter->require_gradients();
  const auto total_steps = std::max<int64_t>(
      1, static_cast<int64_t>(std::llround(recipe.passes * static_cast<double>(count) /
                                           static_cast<double>(recipe.batch))));
  AdapterOptimizer optimizer(adapter->named_tensors(), {.learning_rate = recipe.learning_rate,
                                                        .warmup_steps = recipe.warmup_steps,
                                                        .total_steps = total_steps,
                                                        .clip = recipe.clip});
  const std::filesystem::path checkpoint = out_dir / "checkpoint.safetensors";
  std::map<std::string, std::string, std::less<>> metadata = {{"recipe_hash", recipe.hash},
                                                              {"data_hash", data_hash}};
  if (std::filesystem::exists(checkpoint)) {
    KVLAB_ASSIGN_OR_RETURN(const auto before, optimizer.restore(checkpoint));
    for (const auto& [key, value] : metadata) {
      const auto it = before.find(key);
      if (it == before.end() || it->second != value) {
        return failed_precondition(
            "{}: belongs to another recipe or other data ({} differs); use another output folder",
            checkpoint.string(), key);
      }
    }
  }
  std::map<std::string, std::string> origin_facts = origin_of(recipe, data_hash, *adapter);
  const auto save = [&]() -> absl::Status {
    KVLAB_RETURN_IF_ERROR(optimizer.save(checkpoint, metadata));
    origin_facts["steps"] = fmt::format("{} of {}", optimizer.steps_done(), total_steps);
    return adapter->save(out_dir / "adapter.safetensors", frozen.config, at::kBFloat16,
                         origin_facts);
  };
  SampleOrder order(count, recipe.order_seed);
  const Clock::time_point start = Clock::now();
  TrainingOutcome outcome{.steps = optimizer.steps_done(), .total_steps = total_steps};
  observer.on_start(outcome.steps, total_steps);
  if (outcome.steps == 0 && held > 0) {
    KVLAB_ASSIGN_OR_RETURN(const auto evaluation,
                           evaluate(recipe, passes, frozen, *adapter, held_out, 0));
    KVLAB_RETURN_IF_ERROR(observer.on_evaluation(evaluation));
  }
  while (outcome.steps < total_steps) {
    const Clock::time_point step_start = Clock::now();
    TrainingStep step{.step = outcome.steps + 1};
    for (int64_t b = 0; b < recipe.batch; ++b) {
      const TrainingSample& sample = training[order.at(outcome.steps * recipe.batch + b)];
      KVLAB_ASSIGN_OR_RETURN(const FrozenPass pass,
                             passes.get(sample, adapter->tokens().scalar_type()));
      const SampleLoss one =
          sample_loss(pass, frozen, *adapter, /*backward=*/true,
                      1.0 / static_cast<double>(recipe.batch), /*recall_budgets=*/{});
      step.loss += one.loss / static_cast<double>(recipe.batch);
    }
    const auto info = optimizer.step();
    step.learning_rate = info.learning_rate;
    step.gradient_norm = info.gradient_norm;
    step.seconds = seconds_since(step_start);
    outcome.steps = optimizer.steps_done();
    KVLAB_RETURN_IF_ERROR(observer.on_step(step));
    const bool last = outcome.steps == total_steps;
    if (held > 0 && (last || outcome.steps % recipe.evaluate_every == 0)) {
      KVLAB_ASSIGN_OR_RETURN(const auto evaluation,
                             evaluate(recipe, passes, frozen, *adapter, held_out, outcome.steps));
      KVLAB_RETURN_IF_ERROR(observer.on_evaluation(evaluation));
    }
    const bool out_of_time = deadline_s > 0 && seconds_since(start) > deadline_s;
    const bool stop = !last && (interrupted() || out_of_time);
    if (last || stop || outcome.steps % recipe.checkpoint_every == 0) {
      KVLAB_RETURN_IF_ERROR(save());
    }
    if (stop) {
      outcome.interrupted = true;
      break;
    }
  }
  return outcome;
}

}  // namespace kvlab
