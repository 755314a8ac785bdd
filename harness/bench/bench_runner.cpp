#include "harness/bench/bench_runner.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <random>

#include "harness/base/clock.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "harness/bench/machine_state.h"
#include "harness/bench/tensor_memory.h"
#include "harness/generation/greedy.h"
#include "harness/generation/layer_eviction.h"
#include "harness/model/load_options.h"
#include "harness/model/threads.h"
#include "methods/lookahead_kv/adapter.h"
#include "methods/lookahead_kv/adapter_files.h"
#include "methods/registry.h"

namespace kvlab {
namespace {

// Waits for a device that works on its own.
void synchronize(at::Device device) {
  if (!device.is_cpu()) {
    at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device)).item<float>();
  }
}

// What must exist, and for how long, to decode.
struct FirstToken {
  std::vector<KvCache> caches;  // one an arm
  at::Tensor logits;
};

}  // namespace

BenchRunner::~BenchRunner() {
  if (!random_adapter_.empty()) {
    std::error_code ignored;
    std::filesystem::remove(random_adapter_, ignored);
  }
}

absl::StatusOr<std::unique_ptr<BenchRunner>> BenchRunner::make(BenchConfig config,
                                                               std::optional<Device> device) {
  std::unique_ptr<BenchRunner> runner(new BenchRunner());
  runner->config_ = std::move(config);
  runner->device_ = std::move(device);
  const BenchConfig& c = runner->config_;
  KVLAB_ASSIGN_OR_RETURN(const LoadOptions load, parse_load_options(c.dtype, c.device));
  if (c.random_weights) {
    KVLAB_ASSIGN_OR_RETURN(runner->model_, CausalLm::random(c.model, load, c.seed));
  } else {
    KVLAB_ASSIGN_OR_RETURN(runner->model_, CausalLm::load(c.model_dir, load));
  }
  runner->drafts_ = std::make_unique<DraftModels>(c.model_dir, load);
  const std::string name = std::filesystem::weakly_canonical(c.model_dir).filename().string();
  runner->model_setting_ = make_setting(name,
                                        {{"name", name},
                                         {"config_hash", c.model.content_hash},
                                         {"random_weights", c.random_weights},
                                         {"positions", c.model.max_positions},
                                         {"dtype", c.dtype},
                                         {"device", c.device},
                                         {"prefill_chunk", c.prefill_chunk}},
                                        c.random_weights ? name + " (random weights)" : name);
  KVLAB_RETURN_IF_ERROR(runner->make_cells());
  return runner;
}

absl::Status BenchRunner::make_cells() {
  for (const BenchMethod& method : config_.methods) {
    const std::string place = fmt::format("{}: {}", config_.path.string(), method.name);
    Json params = method.params;
    MethodSizes sizes{.new_tokens = config_.new_tokens};
    if (method.name == "lookahead_kv") {
      if (params.value("adapter", "") == "random") {
        if (random_adapter_.empty()) {
          random_adapter_ =
              (std::filesystem::temp_directory_path() /
               fmt::format("kvlab-random-adapter-{}.safetensors", std::random_device{}()))
                  .string();
          const auto adapter = LookaheadAdapter::initialise(config_.model, LookaheadShape::paper(),
                                                            at::Tensor(), config_.seed);
          KVLAB_RETURN_IF_ERROR(adapter->save(random_adapter_, config_.model, at::kBFloat16, {}));
        }
        params["adapter"] = random_adapter_;
      }
    }
    auto made = make_policy(method.name, params);
    if (!made.ok()) {
      return with_context(made.status(), place);
    }
    const std::shared_ptr<const EvictionPolicy> policy = std::move(made).value();
    Json resolved = policy->resolved_params();
    if (method.name == "lookahead_kv") {
      KVLAB_ASSIGN_OR_RETURN(
          const auto path,
          find_adapter(params.value("adapter", resolved.at("adapter").get<std::string>())));
      KVLAB_ASSIGN_OR_RETURN(
          const auto adapter,
          LookaheadAdapter::load(
              path, config_.model,
              {.accept_unknown_base = resolved.at("accept_unknown_base").get<bool>()}));
      sizes.adapter_tokens = adapter->shape().num_tokens;
      sizes.adapter_rank = adapter->shape().rank;
      if (!random_adapter_.empty() && path == random_adapter_) {
        resolved["adapter"] = "random";  // the file is not there for long
      }
    }
    KVLAB_RETURN_IF_ERROR(with_context(policy->check(config_.model, std::nullopt), place));
    KVLAB_ASSIGN_OR_RETURN(const MethodInfo* info, find_method(method.name));
    if (const std::string draft = resolved.value("draft_model", ""); !draft.empty()) {
      KVLAB_ASSIGN_OR_RETURN(sizes.draft_model, ModelConfig::load(model_path(draft)));
    }
    const absl::StatusOr<MethodCost> cost = method_cost(method.name, resolved, sizes);
    BenchCell cell{.policy = policy,
                   .method = make_setting(method.name, resolved,
                                          method.label.empty() ? policy->label() : method.label),
                   .cost = cost.ok() ? std::optional(*cost) : std::nullopt,
                   .takes_budget = info->needs_budget};
    const std::vector<int64_t> one = {0};
    for (const int64_t length : config_.lengths) {
      for (const int64_t budget : cell.takes_budget ? config_.budgets : one) {
        cell.length = length;
        cell.budget = cell.takes_budget ? budget : length;
        std::vector<std::pair<BenchForm, int64_t>> seen;
        for (const BenchForm form : config_.forms) {
          for (const int64_t arms : config_.arms) {
            cell.arms = arms;
            // A draft needs all layers, and one prefill that evicts on the way makes one cache.
            const bool by_layers =
                form == BenchForm::kByLayers && arms == 1 && policy->check_by_layers().ok();
            cell.form = by_layers ? BenchForm::kByLayers : BenchForm::kShared;
            if (std::find(seen.begin(), seen.end(), std::pair(cell.form, arms)) == seen.end()) {
              seen.emplace_back(cell.form, arms);
              cells_.push_back(cell);
            }
          }
        }
      }
    }
  }
  return absl::OkStatus();
}

std::vector<int32_t> BenchRunner::prompt(int64_t length) const {
  // Any tokens do: no step's time depends on which.
  std::mt19937_64 random(config_.seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < length; ++i) {
    ids.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(config_.model.vocab_size)));
  }
  return ids;
}

void BenchRunner::predict(const BenchCell& cell, BenchMeasurement& m) const {
  // Counts depend on no device.
  const CostModel model(config_.model, device_.value_or(Device{}),
                        config_.dtype == "float32" ? 4 : 2);
  const Cost prefill = model.prefill(cell.length);
  const Cost step =
      model.decode_step(cell.arms, static_cast<double>(std::min(cell.budget, cell.length)) +
                                       static_cast<double>(config_.new_tokens) / 2);
  m.prefill_flops = prefill.flops;
  m.prefill_bytes = prefill.bytes;
  m.decode_flops = step.flops;
  m.decode_bytes = step.bytes;
  if (device_) {
    m.predicted_prefill_s = prefill.seconds;
    m.predicted_decode_step_s = step.seconds;
  }
  m.weight_bytes = static_cast<int64_t>(model.weight_bytes());
  if (!cell.cost) {
    return;
  }
  MethodCost method = *cell.cost;
  method.rows_in_prefill = cell.form == BenchForm::kByLayers;
  const Cost eviction = model.eviction(method, cell.length, cell.budget).total();
  m.eviction_flops = eviction.flops;
  m.eviction_bytes = eviction.bytes;
  m.predicted_eviction_s = device_ ? eviction.seconds : 0;
  m.predicted_peak_bytes =
      model.peak_bytes(method, cell.length, cell.budget, cell.form == BenchForm::kByLayers);
}

BenchMeasurement BenchRunner::measure(const BenchCell& cell) {
  const CpuTimes before = cpu_times();
  const auto start = Clock::now();
  absl::StatusOr<BenchMeasurement> measured = BenchMeasurement{};
  try {
    measured = try_measure(cell);
  } catch (const std::exception& error) {  // out of memory, or an error inside LibTorch
    const std::string text = error.what();
    measured = absl::ResourceExhaustedError(to_absl(text.substr(0, text.find('\n'))));
  }
  BenchMeasurement m;
  if (measured.ok()) {
    m = *std::move(measured);
  } else {
    m.status = CellStatus::kFailed;
    m.reason = message_of(measured.status());
  }
  m.others_busy = others_busy(before, cpu_times(), seconds_since(start));
  m.state = machine_state();
  m.state["threads"] = compute_threads();
  m.budget = cell.takes_budget ? fmt::format("{}", cell.budget) : "full";
  if (cell.takes_budget) {
    m.budget_entries = cell.budget;
  }
  m.form = form_name(cell.form);
  m.prompt_tokens = cell.length;
  m.new_tokens = config_.new_tokens;
  m.arms = cell.arms;
  predict(cell, m);
  return m;
}

absl::StatusOr<BenchMeasurement> BenchRunner::try_measure(const BenchCell& cell) {
  BenchMeasurement m;
  const std::vector<int32_t> ids = prompt(cell.length);
  const SelectionRequest request{cell.policy.get(), {cell.budget}};
  const at::Device device = model_->device();
  reset_peak_resident();
  TensorMemory memory;
  FirstToken first;
  const auto start = Clock::now();
  if (cell.form == BenchForm::kByLayers) {
    KVLAB_ASSIGN_OR_RETURN(LayerEviction run,
                           prefill_and_evict(*model_, ids, request,
                                             {.chunk_size = config_.prefill_chunk,
                                              .max_new_tokens = config_.new_tokens}));
    const SelectionCost& cost = run.result.cost;
    m.query_s = cost.query_s;
    m.score_s = cost.score_s;
    m.choose_s = cost.choose_s;
    m.compact_s = run.compact_s;
    m.prefill_s = run.total_s - cost.query_s - cost.score_s - cost.choose_s - run.compact_s;
    m.prefill_peak_bytes = memory.peak();
    first.caches.push_back(std::move(run.cache));
    first.logits = std::move(run.last_logits);
  } else {
    KVLAB_ASSIGN_OR_RETURN(
        const std::shared_ptr<const PromptState> state,
        model_->prefill(ids, {.chunk_size = config_.prefill_chunk, .needs = cell.policy->needs()}));
    synchronize(device);
    m.prefill_s = seconds_since(start);
    m.prefill_peak_bytes = memory.peak();
    std::optional<Selection> selection;
    if (cell.takes_budget) {
      // No stop ids: every draft is as long as it may be.
      const SelectionSettings settings{.max_new_tokens = config_.new_tokens,
                                       .stop_ids = {},
                                       .draft_models = drafts_.get(),
                                       .keep_going = {}};
      KVLAB_ASSIGN_OR_RETURN(SelectionBatch batch,
                             select_entries(*model_, state, {&request, 1}, settings));
      KVLAB_RETURN_IF_ERROR(batch.arms.front().status());
      const SelectedArm& arm = *batch.arms.front();
      m.query_s = arm.result.cost.query_s;
      m.score_s = arm.result.cost.score_s;
      m.choose_s = arm.result.cost.choose_s;
      m.draft_s = arm.draft_s + arm.first_stage_s;
      selection = arm.result.selection;
    }
    const auto compact = Clock::now();
    for (int64_t arm = 0; arm < cell.arms; ++arm) {
      first.caches.push_back(selection ? KvCache::compact(*state, *selection, config_.new_tokens)
                                       : KvCache::full(state, config_.new_tokens));
      if (arm == 0) {
        synchronize(device);
        m.compact_s = seconds_since(compact);
      }
    }
    first.logits = state->last_logits;
  }
  KVLAB_ASSIGN_OR_RETURN(const int32_t token, argmax_token(first.logits));
  m.first_token_s = seconds_since(start);
  if (cell.form == BenchForm::kShared && cell.arms > 1) {
    m.first_token_s =
        m.prefill_s + m.query_s + m.score_s + m.choose_s + m.draft_s + m.compact_s;  // of one arm
  }
  m.peak_bytes = memory.peak();
  m.resident_peak_bytes = peak_resident_bytes();
  m.cache_bytes = first.caches.front().bytes();

  std::vector<KvCache*> caches;
  for (KvCache& cache : first.caches) {
    caches.push_back(&cache);
  }
  std::vector<int32_t> tokens(caches.size(), token);
  memory.restart_peak();
  const auto decode = Clock::now();
  const int64_t steps = config_.new_tokens - 1;
  for (int64_t step = 0; step < steps; ++step) {
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor logits, model_->decode_step(tokens, caches, {}));
    const at::Tensor on_cpu = logits.to(at::kCPU);
    for (size_t arm = 0; arm < tokens.size(); ++arm) {
      KVLAB_ASSIGN_OR_RETURN(tokens[arm], argmax_token(on_cpu[static_cast<int64_t>(arm)]));
    }
  }
  m.decode_step_s = seconds_since(decode) / static_cast<double>(steps);
  m.steady_bytes = memory.peak();
  return m;
}

absl::Status BenchRunner::run(BenchObserver& observer) {
  std::vector<size_t> order(cells_.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::mt19937_64 random(config_.seed);
  const int64_t rounds = config_.warmup + config_.repetitions;
  const auto total = rounds * static_cast<int64_t>(cells_.size());
  int64_t done = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t index : order) {
      if (!observer.keep_going()) {
        return absl::CancelledError("interrupted; what was measured is stored");
      }
      const BenchCell& cell = cells_[index];
      BenchRecord record{
          .model = model_setting_, .method = cell.method, .measurement = measure(cell)};
      record.measurement.repetition = round - config_.warmup;
      if (round >= config_.warmup) {
        KVLAB_RETURN_IF_ERROR(observer.on_measurement(record));
      }
      observer.on_progress(++done, total,
                           fmt::format("{} {} at {} tokens, {}{}", cell.method.label,
                                       record.measurement.budget, cell.length, form_name(cell.form),
                                       cell.arms > 1 ? fmt::format(", {} arms", cell.arms) : ""));
    }
  }
  return absl::OkStatus();
}

}  // namespace kvlab
