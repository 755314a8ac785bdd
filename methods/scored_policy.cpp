#include "methods/scored_policy.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <utility>

#include "harness/base/status.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/kernels/finite.h"
#include "methods/attention_mass_at.h"
#include "methods/attention_mass_cuda_at.h"
#include "methods/choose.h"

namespace kvlab {
namespace {

class Stopwatch {
 public:
  // Seconds since the last call, or since construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - last_;
    last_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class ScoredPolicy final : public EvictionPolicy {
 public:
  ScoredPolicy(std::string name, Json params, std::unique_ptr<Scorer> scorer,
               const SelectionOptions& options)
      : name_(std::move(name)),
        params_(std::move(params)),
        scorer_(std::move(scorer)),
        options_(options) {}

  const std::string& name() const override { return name_; }
  const Json& resolved_params() const override { return params_; }
  PrefillNeeds needs() const override { return scorer_->needs(); }
  int64_t extra_positions() const override { return scorer_->extra_positions(); }

  std::string label() const override {
    const std::optional<std::string> more = scorer_->label();
    return more ? fmt::format("{} ({})", name_, *more) : name_;
  }

  absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const override {
    if (budget) {
      KVLAB_RETURN_IF_ERROR(check_budget(*budget));
    }
    return with_context(scorer_->check(model, budget), name_);
  }

  absl::StatusOr<std::optional<DraftRequest>> draft_request(
      const SelectionInput& input) const override {
    if (input.budget.entries >= input.prompt->prompt_len()) {
      return std::optional<DraftRequest>();  // everything is kept: nothing to ask
    }
    return scorer_->draft_request(input);
  }

  absl::StatusOr<SelectionResult> select(const SelectionInput& input) const override {
    SelectionResult result;
    result.selection.prompt_len = input.prompt->prompt_len();
    KVLAB_ASSIGN_OR_RETURN(const LayerSelector selector, make_selector(input, result.cost));
    for (size_t layer = 0; layer < input.prompt->layers.size(); ++layer) {
      KVLAB_ASSIGN_OR_RETURN(std::vector<std::vector<int32_t>> kept,
                             selector(static_cast<int64_t>(layer), result.cost));
      result.selection.kept.push_back(std::move(kept));
    }
    return result;
  }

  absl::Status check_by_layers() const override {
    return with_context(scorer_->check_by_layers(), label());
  }

  absl::StatusOr<AppendedRows> appended_rows(const ModelConfig& model) const override {
    absl::StatusOr<AppendedRows> rows = scorer_->appended_rows(model);
    return rows.ok() ? std::move(rows) : with_context(rows.status(), name_);
  }

  absl::StatusOr<LayerSelector> select_by_layers(const SelectionInput& input) const override {
    KVLAB_RETURN_IF_ERROR(check_by_layers());
    SelectionCost cost;  // nothing to speak of: rows have run with the prompt
    return make_selector(input, cost);
  }

 private:
  // ATen throws, when memory runs out for one.
  template <typename Function>
  auto guarded(const Function& function) const -> decltype(function()) {
    try {
      return function();
    } catch (const std::exception& error) {
      return absl::ResourceExhaustedError(to_absl(fmt::format("{}: {}", name_, error.what())));
    }
  }

  absl::StatusOr<LayerSelector> make_selector(const SelectionInput& input,
                                              SelectionCost& cost) const {
    return guarded([&]() -> absl::StatusOr<LayerSelector> { return selector(input, cost); });
  }

  absl::StatusOr<LayerSelector> selector(const SelectionInput& input, SelectionCost& cost) const {
    const c10::NoGradGuard no_grad;
    const PromptState* const prompt = input.prompt;
    const int64_t prompt_len = prompt->prompt_len();
    if (input.budget.entries >= prompt_len) {
      return LayerSelector([prompt](int64_t layer, SelectionCost&) {
        return keep_all_entries(prompt->layers[static_cast<size_t>(layer)].keys.size(0),
                                prompt->prompt_len());
      });
    }
    KVLAB_RETURN_IF_ERROR(check_budget(input.budget));
    SelectionOptions options = options_;
    options.window = window_of(input.budget);
    const std::vector<int64_t> budgets = layer_budgets(
        options, static_cast<int64_t>(prompt->layers.size()), prompt_len, input.budget.entries);
    Stopwatch watch;
    KVLAB_ASSIGN_OR_RETURN(const LayerScores layer_scores, scorer_->prepare(input));
    cost.query_s += watch.lap();
    return LayerSelector(
        [this, prompt, options, budgets, layer_scores](int64_t layer, SelectionCost& layer_cost) {
          return guarded([&]() {
            return choose_layer(layer, *prompt, options, budgets[static_cast<size_t>(layer)],
                                layer_scores, layer_cost);
          });
        });
  }

  absl::StatusOr<std::vector<std::vector<int32_t>>> choose_layer(
      int64_t layer, const PromptState& prompt, const SelectionOptions& options, int64_t budget,
      const LayerScores& layer_scores, SelectionCost& cost) const {
    const c10::NoGradGuard no_grad;
    Stopwatch watch;
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor raw, layer_scores(layer));
    const int64_t num_kv_heads = prompt.layers[static_cast<size_t>(layer)].keys.size(0);
    const at::Tensor scores = reduced_scores(raw, num_kv_heads, options);
    const std::span<const float> values(scores.const_data_ptr<float>(), scores.numel());
    cost.score_s += watch.lap();
    if (!all_finite(ElementType::kFloat32, values.data(), scores.numel())) {
      return data_loss(
          "{}: layer {} has scores that are not finite; the model's keys, values or "
          "queries are broken there",
          name_, layer);
    }
    ChooseInput choose{.scores = values,
                       .num_kv_heads = num_kv_heads,
                       .prompt_len = prompt.prompt_len(),
                       .budget = budget,
                       .sinks = options.sinks,
                       .window = options.window,
                       .adaptive = std::nullopt};
    // Heads that share their scores share their choice: each has an equal part.
    if (options.allocation == Allocation::kAdaptive && !options.one_head) {
      choose.adaptive = options.adaptive;
    }
    std::vector<std::vector<int32_t>> kept = choose_entries(choose);
    cost.choose_s += watch.lap();
    return kept;
  }

  int64_t window_of(Budget budget) const {
    const auto share = static_cast<int64_t>(
        std::floor(options_.recent_share * static_cast<double>(budget.entries)));
    return std::max(options_.window, share);
  }

  absl::Status check_budget(Budget budget) const {
    if (budget.entries < 1) {
      return invalid_argument("{}: the budget is {} entries, must be at least 1", name_,
                              budget.entries);
    }
    const int64_t window = window_of(budget);
    if (options_.sinks + window > budget.entries) {
      return invalid_argument(
          "{}: a budget of {} entries can't hold what is always kept ({} first and {} last "
          "entries); raise the budget or lower these parameters",
          name_, budget.entries, options_.sinks, window);
    }
    return absl::OkStatus();
  }

  // Group reduction and pooling -> [num_kv_heads, prompt_len], contiguous on the CPU. The pooling
  // does not look at the window, whose entries are kept anyway.
  static at::Tensor reduced_scores(const at::Tensor& raw, int64_t num_kv_heads,
                                   const SelectionOptions& options) {
    const int64_t prompt_len = raw.size(1);
    const int64_t num_scored = prompt_len - options.window;
    const int64_t num_rows = options.one_head ? 1 : num_kv_heads;
    at::Tensor scores;
    if (kCudaKernels && raw.is_cuda()) {
      if constexpr (kCudaKernels) {
        scores = reduce_scores_cuda_at(raw.to(at::kFloat), num_rows,
                                       {.group = options.group_reduction,
                                        .pooling = options.pooling,
                                        .kernel = options.kernel,
                                        .pool_before_group = options.pool_before_group,
                                        .num_scored = num_scored})
                     .to(at::kCPU);
      }
    } else {
      scores = raw.to(at::kCPU, at::kFloat).narrow(1, 0, num_scored);
      if (options.pool_before_group) {
        scores = pool_scores_at(scores, options.pooling, options.kernel);
      }
      if (scores.size(0) != num_rows) {
        scores = reduce_group_at(scores, num_rows, options.group_reduction);
      }
      if (!options.pool_before_group) {
        scores = pool_scores_at(scores, options.pooling, options.kernel);
      }
    }
    if (options.window == 0 && num_rows == num_kv_heads) {
      return scores.contiguous();
    }
    at::Tensor padded = at::zeros({num_kv_heads, prompt_len}, at::kFloat);
    padded.narrow(1, 0, prompt_len - options.window).copy_(scores);
    return padded;
  }

  std::string name_;
  Json params_;
  std::unique_ptr<Scorer> scorer_;
  SelectionOptions options_;
};

}  // namespace

std::vector<int64_t> layer_budgets(const SelectionOptions& options, int64_t num_layers,
                                   int64_t prompt_len, int64_t budget) {
  if (options.allocation != Allocation::kPyramid) {
    return std::vector<int64_t>(num_layers, budget);
  }
  return pyramid_budgets({.num_layers = num_layers,
                          .prompt_len = prompt_len,
                          .budget = budget,
                          .sinks = options.sinks,
                          .window = options.window},
                         options.pyramid);
}

std::unique_ptr<EvictionPolicy> make_scored_policy(std::string name, Json resolved_params,
                                                   std::unique_ptr<Scorer> scorer,
                                                   const SelectionOptions& options) {
  return std::make_unique<ScoredPolicy>(std::move(name), std::move(resolved_params),
                                        std::move(scorer), options);
}

}  // namespace kvlab
