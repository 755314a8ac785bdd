#include "harness/sweep/runner.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "harness/base/interrupt.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/model/load_options.h"

namespace kvlab {
namespace {

SampleRecord sample_record(const SweepConfig& config, const ModelPlan& model,
                           const PlannedSample& planned, const BuiltPrompt& prompt,
                           std::optional<int64_t> question_start) {
  const Sample& sample = planned.sample;
  SampleRecord record;
  record.model = model.model;
  record.protocol = model.protocols[planned.protocol];
  record.sample_key = sample.key;
  record.benchmark = sample.benchmark;
  record.dataset = sample.dataset;
  record.task = sample.task;
  record.length = sample.length;
  record.index = sample.index;
  record.references = sample.references;
  record.extra = sample.extra;
  record.text_hash = sha256_hex(sample.prompt);
  std::string ids;
  for (const int32_t id : prompt.token_ids) {
    ids += fmt::format("{},", id);
  }
  record.prompt_hash = sha256_hex(ids);
  record.prompt_tokens = static_cast<int64_t>(prompt.token_ids.size());
  record.question_start = question_start;
  if (config.store_prompts) {
    record.rendered_text = model.tokenizer->decode(prompt.token_ids, /*skip_special_tokens=*/false);
  }
  return record;
}

std::string reply_text(const Tokenizer& tokenizer, const ArmReply& reply) {
  std::span<const int32_t> ids = reply.token_ids;
  if (reply.stop_reason == StopReason::kStopId && !ids.empty()) {
    ids = ids.first(ids.size() - 1);
  }
  return tokenizer.decode(ids, /*skip_special_tokens=*/true);
}

// What was kept and what choosing it took.
void record_selection(const SelectedArm& selected, bool store_selection, ResultRecord& record) {
  const Selection& selection = selected.result.selection;
  record.kept = kept_entries(selection);
  if (store_selection) {
    record.selection = selection;
  }
  record.draft_tokens = static_cast<int64_t>(selected.draft_ids.size());
  record.timings.query_s = selected.result.cost.query_s;
  record.timings.score_s = selected.result.cost.score_s;
  record.timings.choose_s = selected.result.cost.choose_s;
  record.timings.draft_s = selected.draft_s + selected.first_stage_s;
}

bool keeps_all(const KeptEntries& kept, const PromptState& prompt, const ModelConfig& model) {
  return kept.total == prompt.prompt_len() * model.num_layers * model.num_kv_heads;
}

// The arm's cache with room for `room` new tokens. `record`: has the selection recorded; gets what
// the cache takes.
absl::StatusOr<KvCache> make_cache(const std::shared_ptr<const PromptState>& prompt,
                                   const Selection& selection, bool whole, int64_t room,
                                   ResultRecord& record) {
  const Clock::time_point start = Clock::now();
  KvCache cache = whole ? KvCache::full(prompt, room) : KvCache::compact(*prompt, selection, room);
  record.timings.compact_s = seconds_since(start);
  if (cache.prompt_entries() != record.kept.total) {
    return absl::InternalError(
        to_absl(fmt::format("the cache of {} holds {} entries, its selection has {}",
                            record.method.label, cache.prompt_entries(), record.kept.total)));
  }
  record.cache_bytes = cache.prompt_bytes();
  return cache;
}

absl::Status record_reply(const Tokenizer& tokenizer, const PlannedSample& planned,
                          const ArmReply& reply, ResultRecord& record) {
  record.reply_token_ids = reply.token_ids;
  record.new_tokens = static_cast<int64_t>(reply.token_ids.size());
  record.stop_reason = stop_reason_name(reply.stop_reason);
  record.reply = reply_text(tokenizer, reply);
  record.timings.decode_s = reply.decode_s;
  record.timings.decode_steps = reply.steps;
  record.timings.arms_in_batch = reply.arms_in_batch;
  KVLAB_ASSIGN_OR_RETURN(const Score score, planned.benchmark->score(planned.sample, record.reply));
  record.score = score.value;
  record.metric = score.metric;
  return absl::OkStatus();
}

}  // namespace

double sample_work(int64_t prompt_tokens, int64_t max_new_tokens, int64_t arms) {
  // A decoding step of a batch costs about as much as ten prompt tokens and a little for each arm.
  return static_cast<double>(prompt_tokens) +
         static_cast<double>(max_new_tokens) * (10.0 + static_cast<double>(arms));
}

absl::StatusOr<RunOutcome> SweepRunner::run() {
  KVLAB_ASSIGN_OR_RETURN(stored_, store_.stored_keys(options_.retry_failed));
  start_ = Clock::now();
  observer_.on_start(summarize(plan_, stored_));
  for (const ModelPlan& model : plan_.models) {
    KVLAB_RETURN_IF_ERROR(run_model(model));
    if (outcome_.interrupted || outcome_.out_of_time) {
      break;
    }
  }
  return outcome_;
}

absl::Status SweepRunner::run_model(const ModelPlan& model) {
  const bool any = std::any_of(model.samples.begin(), model.samples.end(), [&](const auto& s) {
    return std::any_of(s.arms.begin(), s.arms.end(),
                       [&](const PlannedArm& arm) { return !stored_.contains(arm.key); });
  });
  if (!any) {
    return absl::OkStatus();
  }
  KVLAB_ASSIGN_OR_RETURN(const LoadOptions load,
                         parse_load_options(plan_.config.dtype, plan_.config.device));
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<CausalLm> lm, CausalLm::load(model.dir, load));
  DraftModels drafts(model.dir, load);
  for (const PlannedSample& planned : model.samples) {
    if (interrupted()) {
      outcome_.interrupted = true;
      return absl::OkStatus();
    }
    if (options_.max_time_s > 0 && seconds_since(start_) > options_.max_time_s) {
      outcome_.out_of_time = true;
      return absl::OkStatus();
    }
    const absl::Status status = run_sample(model, planned, *lm, drafts);
    if (absl::IsCancelled(status)) {
      outcome_.interrupted = true;
      return absl::OkStatus();
    }
    KVLAB_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status SweepRunner::run_sample(const ModelPlan& model, const PlannedSample& planned,
                                     CausalLm& lm, DraftModels& drafts) {
  std::vector<Cell> cells;
  for (const PlannedArm& arm : planned.arms) {
    if (stored_.contains(arm.key)) {
      continue;
    }
    Cell cell{.planned = &arm, .arm = &plan_.arms[arm.arm], .record = {}};
    cell.record.method = cell.arm->method;
    cell.record.budget = cell.arm->budget_text();
    cell.record.question_aware = cell.arm->question_aware;
    cells.push_back(std::move(cell));
  }
  if (cells.empty()) {
    return absl::OkStatus();
  }
  // Both forms, whichever arms run, so that the sample's row does not depend on them.
  const auto build = [&](bool split_question) {
    return build_prompt(prompt_request(planned.sample, split_question), *model.tokenizer,
                        model.format);
  };
  KVLAB_ASSIGN_OR_RETURN(const BuiltPrompt whole, build(/*split_question=*/false));
  const absl::StatusOr<BuiltPrompt> split =
      has_question(planned.sample) ? build(/*split_question=*/true) : whole;
  int64_t to_run = 0;
  for (const bool aware : {true, false}) {
    std::vector<Cell*> group;
    for (Cell& cell : cells) {
      if (!cell.planned->skip_reason.empty()) {
        cell.record.status = CellStatus::kSkipped;
        cell.record.reason = cell.planned->skip_reason;
      } else if (cell.arm->question_aware == aware) {
        group.push_back(&cell);
      }
    }
    if (!group.empty()) {
      if (!aware) {
        KVLAB_RETURN_IF_ERROR(split.status());
      }
      to_run += static_cast<int64_t>(group.size());
      KVLAB_RETURN_IF_ERROR(run_cells(model, planned, aware ? whole : *split, lm, drafts, group));
    }
  }
  std::vector<ResultRecord> records;
  for (Cell& cell : cells) {
    outcome_.failed += cell.record.status == CellStatus::kFailed ? 1 : 0;
    outcome_.skipped += cell.record.status == CellStatus::kSkipped ? 1 : 0;
    if (cell.record.status == CellStatus::kFailed) {
      observer_.on_message(fmt::format("failed: {}, {} at budget {}: {}", planned.sample.key,
                                       cell.record.method.label, cell.record.budget,
                                       cell.record.reason));
    }
    records.push_back(cell.record);
  }
  KVLAB_RETURN_IF_ERROR(
      store_
          .write_sample(sample_record(plan_.config, model, planned, whole,
                                      split.ok() ? split->question_start : std::nullopt),
                        records)
          .status());
  ++outcome_.samples;
  outcome_.cells += static_cast<int64_t>(cells.size());
  observer_.on_sample(sample_work(planned.prompt_tokens, planned.sample.max_new_tokens, to_run),
                      planned.sample.key);
  return check_sanity(model, planned, cells);
}

absl::Status SweepRunner::run_cells(const ModelPlan& model, const PlannedSample& planned,
                                    const BuiltPrompt& prompt, CausalLm& lm, DraftModels& drafts,
                                    const std::vector<Cell*>& cells) {
  absl::Status status;
  try {
    status = try_cells(model, planned, prompt, lm, drafts, cells);
  } catch (const std::bad_alloc&) {
    status = absl::ResourceExhaustedError("out of memory");
  } catch (const std::exception& error) {  // LibTorch's errors, its allocators' too
    const std::string text = error.what();
    status = absl::ResourceExhaustedError(to_absl(text.substr(0, text.find('\n'))));
  }
  if (status.ok() || absl::IsCancelled(status)) {
    return status;
  }
  if (cells.size() == 1) {
    cells.front()->record.status = CellStatus::kFailed;
    cells.front()->record.reason = message_of(status);
    return absl::OkStatus();
  }
  // One arm, or all of them together, was too much: each by itself may still work.
  for (Cell* cell : cells) {
    KVLAB_RETURN_IF_ERROR(run_cells(model, planned, prompt, lm, drafts, {cell}));
  }
  return absl::OkStatus();
}

absl::Status SweepRunner::try_cells(const ModelPlan& model, const PlannedSample& planned,
                                    const BuiltPrompt& prompt, CausalLm& lm, DraftModels& drafts,
                                    const std::vector<Cell*>& cells) {
  const Sample& sample = planned.sample;
  const bool aware = cells.front()->arm->question_aware;
  const std::span<const int32_t> all_ids = prompt.token_ids;
  const std::span<const int32_t> prompt_ids =
      aware ? all_ids : all_ids.first(static_cast<size_t>(prompt.question_start.value_or(0)));
  const std::span<const int32_t> question_ids = all_ids.subspan(prompt_ids.size());

  std::vector<const EvictionPolicy*> policies;
  for (const Cell* cell : cells) {
    policies.push_back(cell->arm->policy.get());
  }
  PrefillOptions prefill{.chunk_size = plan_.config.prefill_chunk, .needs = {}};
  KVLAB_ASSIGN_OR_RETURN(prefill.needs, combined_needs(policies));
  const Clock::time_point prefill_start = Clock::now();
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<const PromptState> state,
                         lm.prefill(prompt_ids, prefill));
  const double prefill_s = seconds_since(prefill_start);

  std::vector<SelectionRequest> requests;
  for (const Cell* cell : cells) {
    const int64_t entries =
        cell->arm->budget ? cell->arm->budget->resolve(state->prompt_len()) : state->prompt_len();
    requests.push_back({.policy = cell->arm->policy.get(), .budget = Budget{entries}});
  }
  SelectionSettings settings{.max_new_tokens = sample.max_new_tokens,
                             .min_new_tokens = sample.min_new_tokens,
                             .stop_ids = planned.stop_ids,
                             .draft_models = &drafts,
                             .want_full_reply = false,
                             .keep_going = [] { return !interrupted(); }};
  KVLAB_ASSIGN_OR_RETURN(SelectionBatch selections, select_entries(lm, state, requests, settings));

  std::vector<ArmRequest> arms;
  std::vector<Cell*> arm_cells;
  const int64_t room = static_cast<int64_t>(question_ids.size()) + sample.max_new_tokens;
  for (size_t i = 0; i < cells.size(); ++i) {
    ResultRecord& record = cells[i]->record;
    record.status = CellStatus::kOk;  // an earlier try beside other arms may have failed
    record.reason.clear();
    const absl::StatusOr<SelectedArm>& selected = selections.arms[i];
    if (absl::IsResourceExhausted(selected.status()) && cells.size() > 1) {
      return selected.status();  // alone it may have memory enough
    }
    if (!selected.ok()) {
      record.status = CellStatus::kFailed;
      record.reason = message_of(selected.status());
      continue;
    }
    record_selection(*selected, plan_.config.store_selections, record);
    record.timings.prefill_s = prefill_s;
    if (cells[i]->arm->budget) {
      record.budget_entries = requests[i].budget.entries;
    }
    const bool whole = keeps_all(record.kept, *state, model.config);
    KVLAB_ASSIGN_OR_RETURN(KvCache cache,
                           make_cache(state, selected->result.selection, whole, room, record));
    if (whole && aware && selections.full_reply) {
      KVLAB_RETURN_IF_ERROR(
          record_reply(*model.tokenizer, planned, *selections.full_reply, record));
      continue;
    }
    at::Tensor first_logits = state->last_logits;
    if (!aware) {
      KVLAB_ASSIGN_OR_RETURN(first_logits, lm.extend(question_ids, cache, nullptr));
    }
    arms.push_back({.cache = std::move(cache),
                    .first_logits = first_logits,
                    .max_new_tokens = sample.max_new_tokens,
                    .min_new_tokens = sample.min_new_tokens,
                    .stop_ids = planned.stop_ids});
    arm_cells.push_back(cells[i]);
  }

  std::vector<ArmReply> replies;
  if (!arms.empty()) {
    GreedyOptions greedy;
    greedy.on_step = [](int64_t /*steps*/) { return !interrupted(); };
    KVLAB_ASSIGN_OR_RETURN(replies, decode_greedy(lm, std::move(arms), greedy));
  }
  for (size_t i = 0; i < replies.size(); ++i) {
    KVLAB_RETURN_IF_ERROR(
        record_reply(*model.tokenizer, planned, replies[i], arm_cells[i]->record));
  }
  return absl::OkStatus();
}

absl::Status SweepRunner::check_sanity(const ModelPlan& model, const PlannedSample& planned,
                                       const std::vector<Cell>& cells) {
  const Sample& sample = planned.sample;
  const auto band = plan_.config.sanity_bands.find(sample.task);
  if (band == plan_.config.sanity_bands.end()) {
    return absl::OkStatus();
  }
  const auto enough = static_cast<size_t>(plan_.config.sanity_after_samples);
  for (const Cell& cell : cells) {
    if (cell.arm->budget || cell.record.status != CellStatus::kOk) {
      continue;
    }
    std::vector<double>& scores = full_scores_[fmt::format(
        "{}/{}/{}/{}/{}/{}", model.model.hash, planned.protocol, sample.dataset, sample.task,
        sample.length, cell.arm->question_aware)];
    if (scores.size() >= enough) {
      continue;
    }
    scores.push_back(cell.record.score);
    if (scores.size() < enough) {
      continue;
    }
    const double mean =
        std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
    const auto& [low, high] = band->second;
    if (mean < low || mean > high) {
      return failed_precondition(
          "the full cache scores {:.1f} on {} over {} samples, outside its sanity band of {} to "
          "{}: prompt, template or model are not what the sweep expects (kvlab run --show-prompt 0 "
          "shows them); stored rows are kept",
          mean, sample.task, scores.size(), low, high);
    }
  }
  return absl::OkStatus();
}

}  // namespace kvlab
