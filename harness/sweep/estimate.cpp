#include "harness/sweep/estimate.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "harness/base/clock.h"
#include "harness/base/status.h"
#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "harness/model/load_options.h"
#include "harness/model/weight_files.h"
#include "harness/text/prompt_builder.h"

namespace kvlab {
namespace {

constexpr size_t kTrialTokens = 1024;
constexpr int64_t kTrialSteps = 6;
constexpr int64_t kTrialArms = 8;

struct Rates {
  double prefill_s_per_token = 0;
  double step_s = 0;       // of one arm
  double extra_arm_s = 0;  // added to a step by every further arm
};

// Seconds of a decoding step with so many arms.
absl::StatusOr<double> time_step(CausalLm& lm, const std::shared_ptr<const PromptState>& state,
                                 int64_t arms) {
  std::vector<ArmRequest> requests;
  for (int64_t i = 0; i < arms; ++i) {
    requests.push_back({.cache = KvCache::full(state, kTrialSteps),
                        .first_logits = state->last_logits,
                        .max_new_tokens = kTrialSteps});
  }
  const Clock::time_point start = Clock::now();
  KVLAB_RETURN_IF_ERROR(decode_greedy(lm, std::move(requests)).status());
  // The first token comes from the prompt's logits.
  return seconds_since(start) / static_cast<double>(kTrialSteps - 1);
}

absl::StatusOr<Rates> measure(CausalLm& lm, std::span<const int32_t> ids, int64_t chunk) {
  const PrefillOptions options{.chunk_size = chunk, .needs = {}};
  // The weights are read from disk by the first run.
  KVLAB_RETURN_IF_ERROR(lm.prefill(ids.first(std::min<size_t>(ids.size(), 32)), options).status());
  const Clock::time_point start = Clock::now();
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<const PromptState> state, lm.prefill(ids, options));
  Rates rates;
  rates.prefill_s_per_token = seconds_since(start) / static_cast<double>(ids.size());
  KVLAB_RETURN_IF_ERROR(time_step(lm, state, 1).status());
  KVLAB_ASSIGN_OR_RETURN(rates.step_s, time_step(lm, state, 1));
  KVLAB_ASSIGN_OR_RETURN(const double many, time_step(lm, state, kTrialArms));
  rates.extra_arm_s = std::max(0.0, many - rates.step_s) / static_cast<double>(kTrialArms - 1);
  return rates;
}

int64_t open_arms(const PlannedSample& planned, const absl::flat_hash_set<std::string>& stored) {
  return std::count_if(planned.arms.begin(), planned.arms.end(), [&](const PlannedArm& arm) {
    return arm.skip_reason.empty() && !stored.contains(arm.key);
  });
}

absl::StatusOr<double> estimate_model(const SweepPlan& plan, const ModelPlan& model,
                                      const absl::flat_hash_set<std::string>& stored) {
  const auto first = std::find_if(model.samples.begin(), model.samples.end(),
                                  [&](const auto& s) { return open_arms(s, stored) > 0; });
  if (first == model.samples.end()) {
    return 0.0;
  }
  KVLAB_ASSIGN_OR_RETURN(const LoadOptions load,
                         parse_load_options(plan.config.dtype, plan.config.device));
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<CausalLm> lm, CausalLm::load(model.dir, load));
  KVLAB_ASSIGN_OR_RETURN(const BuiltPrompt prompt,
                         build_prompt(prompt_request(first->sample, /*split_question=*/false),
                                      *model.tokenizer, model.format));
  const std::span<const int32_t> ids = prompt.token_ids;
  KVLAB_ASSIGN_OR_RETURN(
      const Rates rates,
      measure(*lm, ids.first(std::min(ids.size(), kTrialTokens)), plan.config.prefill_chunk));
  double seconds = 0;
  for (const PlannedSample& planned : model.samples) {
    const int64_t arms = open_arms(planned, stored);
    if (arms > 0) {
      seconds += static_cast<double>(planned.prompt_tokens) * rates.prefill_s_per_token +
                 static_cast<double>(planned.sample.max_new_tokens) *
                     (rates.step_s + static_cast<double>(arms - 1) * rates.extra_arm_s);
    }
  }
  return seconds;
}

}  // namespace

absl::StatusOr<double> estimate_seconds(const SweepPlan& plan,
                                        const absl::flat_hash_set<std::string>& stored) {
  double seconds = 0;
  try {
    for (const ModelPlan& model : plan.models) {
      KVLAB_ASSIGN_OR_RETURN(const double one, estimate_model(plan, model, stored));
      seconds += one;
    }
  } catch (const std::exception& error) {  // out of memory, or an error inside LibTorch
    const std::string text = error.what();
    return absl::ResourceExhaustedError(to_absl(text.substr(0, text.find('\n'))));
  }
  return seconds;
}

absl::StatusOr<int64_t> weight_bytes(const SweepPlan& plan) {
  int64_t largest = 0;
  for (const ModelPlan& model : plan.models) {
    KVLAB_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(model.dir));
    int64_t bytes = 0;
    for (const auto& [name, tensor] : files.tensors()) {
      const auto& shape = tensor.entry->shape;
      bytes += std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()) *
               (plan.config.dtype == "float32" ? 4 : 2);
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace kvlab
