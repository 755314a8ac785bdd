#include "harness/sweep/plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "benchmarks/registry.h"
#include "harness/base/status.h"
#include "harness/generation/policy_runner.h"
#include "harness/model/model_fingerprint.h"
#include "harness/sweep/exclude.h"
#include "methods/registry.h"

namespace kvlab {
namespace {

absl::StatusOr<std::vector<Arm>> make_arms(const SweepConfig& config) {
  std::vector<Arm> arms;
  std::map<std::string, std::string> places;  // what makes an arm unique, to where it was given
  for (const MethodSpec& spec : config.methods) {
    const std::string place = fmt::format("{}: {}", config.path.string(), spec.place);
    auto made = make_policy(spec.name, spec.params);
    if (!made.ok()) {
      return with_context(made.status(), place);
    }
    const std::shared_ptr<const EvictionPolicy> policy = std::move(made).value();
    KVLAB_ASSIGN_OR_RETURN(const MethodInfo* info, find_method(spec.name));
    std::vector<std::optional<BudgetSpec>> budgets = {std::nullopt};
    if (info->needs_budget) {
      budgets.assign(spec.budgets.begin(), spec.budgets.end());
      if (budgets.empty()) {
        return invalid_argument("{}: {} needs a budget, and the file has no \"budgets\"", place,
                                spec.name);
      }
    }
    const std::string label = spec.label.empty() ? policy->label() : spec.label;
    for (const bool aware : config.question_aware) {
      for (const auto& budget : budgets) {
        Arm arm{.policy = policy,
                .method = make_setting(spec.name, policy->resolved_params(), label),
                .budget = budget,
                .question_aware = aware};
        const std::string identity =
            fmt::format("{} {} {}", arm.method.hash, arm.budget_text(), aware);
        const auto [it, is_new] = places.emplace(identity, spec.place);
        if (!is_new) {
          return invalid_argument("{}: the same method with the same parameters stands at {}",
                                  place, it->second);
        }
        arms.push_back(std::move(arm));
      }
    }
  }
  return arms;
}

absl::Status check_arms(const SweepConfig& config, const std::vector<Arm>& arms,
                        const ModelPlan& model) {
  for (const Arm& arm : arms) {
    absl::Status status = arm.policy->check(model.config, std::nullopt);
    if (status.ok() && arm.budget && !arm.budget->share) {
      status = arm.policy->check(model.config, Budget{arm.budget->tokens});
    }
    if (!status.ok()) {
      return with_context(
          status, fmt::format("{}: {} at budget {} on {}", config.path.string(), arm.method.label,
                              arm.budget_text(), model.dir.filename().string()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ModelPlan> open_model(const SweepConfig& config, const std::filesystem::path& dir) {
  ModelPlan plan;
  plan.dir = dir;
  KVLAB_ASSIGN_OR_RETURN(plan.config, ModelConfig::load(dir));
  KVLAB_ASSIGN_OR_RETURN(plan.tokenizer, Tokenizer::load(dir));
  KVLAB_ASSIGN_OR_RETURN(plan.format, PromptFormat::load(dir));
  KVLAB_ASSIGN_OR_RETURN(const std::string weights, weights_fingerprint(dir));
  std::string name = std::filesystem::weakly_canonical(dir).filename().string();
  plan.model = make_setting(name, {{"name", name},
                                   {"config_hash", plan.config.content_hash},
                                   {"weights_fingerprint", weights},
                                   {"tokenizer_hash", plan.tokenizer->content_hash()},
                                   {"template_hash", plan.format.template_hash},
                                   {"dtype", config.dtype},
                                   {"device", config.device},
                                   {"prefill_chunk", config.prefill_chunk}});
  return plan;
}

// Whether the sample with its longest arm fits the model's positions.
absl::Status check_positions(const SweepConfig& config, const ModelPlan& model,
                             const std::vector<Arm>& arms, const PlannedSample& planned) {
  int64_t extra = planned.sample.max_new_tokens;
  for (const PlannedArm& arm : planned.arms) {
    extra = std::max(extra, arms[arm.arm].policy->extra_positions());
  }
  const int64_t needed = planned.prompt_tokens + extra;
  if (needed <= model.config.max_positions) {
    return absl::OkStatus();
  }
  return invalid_argument(
      "{}: {} needs {} positions ({} of the prompt with its template, {} new, draft or lookahead "
      "tokens), but {} has {}; use a shorter length, or max_prompt_tokens at least {} lower",
      config.path.string(), planned.sample.key, needed, planned.prompt_tokens, extra,
      model.dir.filename().string(), model.config.max_positions,
      needed - model.config.max_positions);
}

std::string protocol_name(const Json& protocol, const std::string& benchmark) {
  const auto it = protocol.is_object() ? protocol.find("name") : protocol.end();
  return protocol.is_object() && it != protocol.end() && it->is_string() ? it->get<std::string>()
                                                                         : benchmark;
}

// What planning goes by, and what it has seen of the sweep on its way.
struct Planning {
  const SweepConfig& config;
  const std::vector<Arm>& arms;
  CellFilter filter;
  std::set<std::string> tasks;
  // Model, protocol, dataset and key of every sample, to the entry of "benchmarks" that has it.
  std::map<std::tuple<std::string, std::string, std::string, std::string>, size_t> samples;
};

// Decides what runs of one sample and gives every cell its key.
void plan_cells(Planning& planning, const ModelPlan& model, PlannedSample& planned) {
  for (size_t i = 0; i < planning.arms.size(); ++i) {
    const Arm& arm = planning.arms[i];
    const CellFacts facts{.model = model.model.name,
                          .benchmark = planned.sample.benchmark,
                          .task = planned.sample.task,
                          .length = planned.sample.length,
                          .method = arm.method.name,
                          .label = arm.method.label,
                          .budget = arm.budget_text(),
                          .question_aware = arm.question_aware};
    if (!planning.filter.keeps(facts)) {
      continue;
    }
    PlannedArm cell;
    cell.arm = i;
    cell.key = cell_key(CellId{.model_hash = model.model.hash,
                               .protocol_hash = model.protocols[planned.protocol].hash,
                               .method_hash = arm.method.hash,
                               .dataset = planned.sample.dataset,
                               .sample_key = planned.sample.key,
                               .budget = arm.budget_text(),
                               .question_aware = arm.question_aware});
    const int64_t tokens = arm.question_aware ? planned.prompt_tokens : planned.context_tokens;
    if (!arm.question_aware && !planned.split_fault.empty()) {
      cell.skip_reason = planned.split_fault;
    } else if (arm.budget && arm.budget->share && arm.budget->resolve(tokens) < tokens) {
      const absl::Status status =
          arm.policy->check(model.config, Budget{arm.budget->resolve(tokens)});
      cell.skip_reason = status.ok() ? "" : message_of(status);
    }
    planned.arms.push_back(std::move(cell));
  }
}

// Builds the prompt as the arms take it: whole, with the question apart, or both.
absl::Status plan_prompt(const SweepConfig& config, const ModelPlan& model,
                         PlannedSample& planned) {
  const auto build = [&](bool split_question) {
    return build_prompt(prompt_request(planned.sample, split_question), *model.tokenizer,
                        model.format);
  };
  const auto wanted = [&](bool aware) {
    return std::find(config.question_aware.begin(), config.question_aware.end(), aware) !=
           config.question_aware.end();
  };
  std::optional<BuiltPrompt> prompt;
  if (wanted(false) && !has_question(planned.sample)) {
    planned.split_fault = "the prompt has no separate question to keep out of the cache";
  } else if (wanted(false)) {
    absl::StatusOr<BuiltPrompt> split = build(/*split_question=*/true);
    if (split.ok()) {
      planned.context_tokens = static_cast<int64_t>(split->question_start.value_or(0));
      prompt = *std::move(split);
    } else {
      planned.split_fault = message_of(split.status());
    }
  }
  if (!prompt || wanted(true)) {
    KVLAB_ASSIGN_OR_RETURN(prompt, build(/*split_question=*/false));
  }
  planned.prompt_tokens = static_cast<int64_t>(prompt->token_ids.size());
  planned.facts = std::move(prompt->facts);
  return absl::OkStatus();
}

absl::Status plan_benchmark(Planning& planning, size_t index, ModelPlan& model) {
  const SweepConfig& config = planning.config;
  const BenchmarkSpec& spec = config.benchmarks[index];
  const std::string place = fmt::format("{}: benchmarks[{}]", config.path.string(), index);
  auto found = find_benchmark(spec.name);
  if (!found.ok()) {
    return with_context(found.status(), place);
  }
  const Benchmark* benchmark = *found;
  auto protocol = benchmark->resolve_protocol(spec.params);
  if (!protocol.ok()) {
    return with_context(protocol.status(), place);
  }
  model.protocols.push_back(make_setting(protocol_name(*protocol, spec.name), *protocol));
  auto samples = benchmark->load_samples(spec.params, *model.tokenizer, model.format);
  if (!samples.ok()) {
    return with_context(samples.status(), place);
  }
  for (Sample& sample : *samples) {
    planning.tasks.insert(sample.task);
    const auto [other, is_new] = planning.samples.emplace(
        std::tuple(model.model.hash, model.protocols.back().hash, sample.dataset, sample.key),
        index);
    if (!is_new) {
      return invalid_argument("{}: {} is in benchmarks[{}] too", place, sample.key, other->second);
    }
    PlannedSample planned;
    planned.benchmark = benchmark;
    planned.protocol = model.protocols.size() - 1;
    planned.sample = std::move(sample);
    if (absl::Status status = plan_prompt(config, model, planned); !status.ok()) {
      return with_context(status, fmt::format("{}, {}", place, planned.sample.key));
    }
    auto stop_ids =
        stop_token_ids(planned.sample.stop_texts, model.config.stop_ids, *model.tokenizer);
    if (!stop_ids.ok()) {
      return with_context(stop_ids.status(), fmt::format("{}, {}", place, planned.sample.key));
    }
    if (stop_ids->empty()) {
      return invalid_argument(
          "{}: nothing ends a reply: {} has no eos_token_id in its config.json or "
          "generation_config.json, and the protocol no stop text",
          place, model.dir.filename().string());
    }
    planned.stop_ids = std::move(*stop_ids);
    plan_cells(planning, model, planned);
    if (planned.arms.empty()) {
      continue;
    }
    KVLAB_RETURN_IF_ERROR(check_positions(config, model, planning.arms, planned));
    model.samples.push_back(std::move(planned));
  }
  return absl::OkStatus();
}

// One prefill serves all arms of a sample.
absl::Status check_needs(const SweepConfig& config, const std::vector<Arm>& arms) {
  std::vector<const EvictionPolicy*> policies;
  for (const Arm& arm : arms) {
    policies.push_back(arm.policy.get());
  }
  return with_context(combined_needs(policies).status(), config.path.string());
}

// A rule or a band for what the sweep does not have is a slip of the pen.
absl::Status check_names(const Planning& planning) {
  const std::string origin = planning.config.path.string();
  if (absl::Status status = planning.filter.check_rules(); !status.ok()) {
    return with_context(status, origin);
  }
  for (const auto& [task, band] : planning.config.sanity_bands) {
    if (!planning.tasks.contains(task)) {
      return invalid_argument("{}: sanity.bands: the sweep has no task \"{}\"; it has {}", origin,
                              task, fmt::join(planning.tasks, ", "));
    }
  }
  return absl::OkStatus();
}

// Sample 0 of every task, then sample 1 of every task: stopped early, all tasks have equally many.
void order_round_robin(std::vector<PlannedSample>& samples) {
  std::map<std::tuple<size_t, std::string, std::string, int64_t>, int64_t> seen;
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i].sample;
    order.emplace_back(seen[{samples[i].protocol, sample.dataset, sample.task, sample.length}]++,
                       i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<PlannedSample> sorted;
  sorted.reserve(samples.size());
  for (const auto& [round, i] : order) {
    sorted.push_back(std::move(samples[i]));
  }
  samples = std::move(sorted);
}

void keep_shard(const PlanOptions& options, std::vector<PlannedSample>& samples) {
  std::vector<PlannedSample> kept;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (static_cast<int64_t>(i) % options.num_shards == options.shard - 1) {
      kept.push_back(std::move(samples[i]));
    }
  }
  samples = std::move(kept);
}

}  // namespace

absl::StatusOr<SweepPlan> make_plan(const SweepConfig& config, const PlanOptions& options) {
  SweepPlan plan;
  plan.config = config;
  KVLAB_ASSIGN_OR_RETURN(plan.arms, make_arms(config));
  KVLAB_RETURN_IF_ERROR(check_needs(config, plan.arms));
  KVLAB_ASSIGN_OR_RETURN(CellFilter filter, CellFilter::make(config.exclude, options.filter));
  Planning planning{.config = config, .arms = plan.arms, .filter = std::move(filter)};
  for (const std::filesystem::path& dir : config.models) {
    KVLAB_ASSIGN_OR_RETURN(ModelPlan model, open_model(config, dir));
    for (const ModelPlan& other : plan.models) {
      if (other.model.hash == model.model.hash) {
        return invalid_argument("{}: model: {} stands twice", config.path.string(), dir.string());
      }
    }
    KVLAB_RETURN_IF_ERROR(check_arms(config, plan.arms, model));
    for (size_t i = 0; i < config.benchmarks.size(); ++i) {
      KVLAB_RETURN_IF_ERROR(plan_benchmark(planning, i, model));
    }
    order_round_robin(model.samples);
    keep_shard(options, model.samples);
    plan.models.push_back(std::move(model));
  }
  KVLAB_RETURN_IF_ERROR(check_names(planning));
  for (const ModelPlan& model : plan.models) {
    if (!model.samples.empty()) {
      return plan;
    }
  }
  return invalid_argument("{}: nothing to run: no cell is left after exclude{}{}",
                          config.path.string(), options.filter.empty() ? "" : " and --filter",
                          options.num_shards > 1 ? ", or this shard is empty" : "");
}

PlanSummary summarize(const SweepPlan& plan, const absl::flat_hash_set<std::string>& stored) {
  PlanSummary summary;
  for (const ModelPlan& model : plan.models) {
    const int64_t bytes_per_token = 2 * model.config.num_layers * model.config.num_kv_heads *
                                    model.config.head_dim *
                                    (plan.config.dtype == "bfloat16" ? 2 : 4);
    for (const PlannedSample& planned : model.samples) {
      int64_t to_run = 0;
      int64_t entries = planned.prompt_tokens;
      for (const PlannedArm& cell : planned.arms) {
        if (stored.contains(cell.key)) {
          ++summary.stored_cells;
        } else if (!cell.skip_reason.empty()) {
          ++summary.skipped_cells;
        } else {
          ++to_run;
          const Arm& arm = plan.arms[cell.arm];
          entries += planned.sample.max_new_tokens;
          const int64_t kept = arm.budget ? std::min(arm.budget->resolve(planned.prompt_tokens),
                                                     planned.prompt_tokens)
                                          : planned.prompt_tokens;
          entries += arm.budget ? kept : 0;  // the full cache is the prompt's own
          summary.selected_entries += kept * model.config.num_layers * model.config.num_kv_heads;
        }
      }
      if (to_run == 0) {
        continue;
      }
      ++summary.samples;
      summary.cells += to_run;
      summary.prefill_tokens += planned.prompt_tokens;
      summary.max_prompt_tokens = std::max(summary.max_prompt_tokens, planned.prompt_tokens);
      summary.max_new_tokens += to_run * planned.sample.max_new_tokens;
      summary.peak_cache_bytes = std::max(summary.peak_cache_bytes, entries * bytes_per_token);
    }
  }
  return summary;
}

}  // namespace kvlab
