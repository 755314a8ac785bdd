#include "harness/generation/policy_runner.h"

#include <algorithm>
#include <list>

#include "harness/base/check.h"
#include "harness/base/clock.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

bool contains(const std::vector<int32_t>& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// One draft to decode, for every request that can share it.
struct DraftJob {
  DraftRequest request;        // num_tokens: the most any of its requests wants
  int64_t min_new_tokens = 0;  // only a whole reply has one
  ArmReply reply;              // of the draft model
  CapturedQueries queries;     // of the target, one row for each of reply.token_ids
  double shared_s = 0;         // what all its requests wait for
  absl::Status status;

  bool by_other_model() const {
    return !request.draft_model_dir.empty() || request.draft_layers > 0;
  }
  bool holds_full_reply(const SelectionSettings& settings) const {
    return !by_other_model() && request.cache == DraftRequest::Cache::kFull &&
           request.num_tokens >= settings.max_new_tokens &&
           min_new_tokens == settings.min_new_tokens;
  }
};

// A request's part of a job: its first num_tokens.
struct DraftPart {
  size_t job = 0;
  int64_t num_tokens = 0;
};

bool shares(const DraftJob& job, const DraftRequest& request, int64_t min_new_tokens) {
  return job.request.cache == request.cache && job.min_new_tokens == min_new_tokens &&
         job.request.draft_model_dir == request.draft_model_dir &&
         job.request.draft_layers == request.draft_layers &&
         job.request.selection.kept == request.selection.kept;
}

DraftPart add_draft(DraftRequest request, const SelectionSettings& settings,
                    std::vector<DraftJob>& jobs) {
  const bool whole = request.num_tokens == 0;
  const int64_t min_new_tokens = whole ? settings.min_new_tokens : 0;
  if (whole) {
    request.num_tokens = settings.max_new_tokens;
  }
  const int64_t num_tokens = request.num_tokens;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (shares(jobs[i], request, min_new_tokens)) {
      jobs[i].request.num_tokens = std::max(jobs[i].request.num_tokens, num_tokens);
      return {i, num_tokens};
    }
  }
  DraftJob& job = jobs.emplace_back();
  job.request = std::move(request);
  job.min_new_tokens = min_new_tokens;
  return {jobs.size() - 1, num_tokens};
}

GreedyOptions greedy_options(const SelectionSettings& settings) {
  GreedyOptions options;
  if (settings.keep_going) {
    options.on_step = [&settings](int64_t /*steps*/) { return settings.keep_going(); };
  }
  return options;
}

ArmRequest decode_request(const DraftJob& job, const std::shared_ptr<const PromptState>& prompt,
                          const SelectionSettings& settings, bool capture_queries) {
  const int64_t num_tokens = job.request.num_tokens;
  return {.cache = job.request.cache == DraftRequest::Cache::kFull
                       ? KvCache::full(prompt, num_tokens)
                       : KvCache::compact(*prompt, job.request.selection, num_tokens),
          .first_logits = prompt->last_logits,
          .max_new_tokens = num_tokens,
          .min_new_tokens = job.min_new_tokens,
          .stop_ids = settings.stop_ids,
          .capture_queries = capture_queries};
}

// All drafts that the model itself decodes, in one batch.
absl::Status decode_own_drafts(CausalLm& model, const std::shared_ptr<const PromptState>& prompt,
                               const SelectionSettings& settings, std::vector<DraftJob>& jobs) {
  std::vector<DraftJob*> own;
  std::vector<ArmRequest> requests;
  for (DraftJob& job : jobs) {
    if (!job.by_other_model()) {
      own.push_back(&job);
      requests.push_back(decode_request(job, prompt, settings, /*capture_queries=*/true));
      job.request.selection = {};  // its cache is made
    }
  }
  KVLAB_ASSIGN_OR_RETURN(std::vector<ArmReply> replies,
                         decode_greedy(model, std::move(requests), greedy_options(settings)));
  for (size_t i = 0; i < own.size(); ++i) {
    own[i]->reply = std::move(replies[i]);
    own[i]->queries = std::move(own[i]->reply.queries);
    own[i]->shared_s = own[i]->reply.decode_share_s;
  }
  return absl::OkStatus();
}

// A draft by another model (or by the first layers of this one): its own prefill and full cache,
// then one pass of the target over the tokens.
absl::Status decode_other_draft(CausalLm& target, const std::shared_ptr<const PromptState>& prompt,
                                const SelectionSettings& settings, DraftJob& job) {
  if (settings.draft_models == nullptr) {
    return failed_precondition("a draft model is needed, and none can be loaded here");
  }
  KVLAB_ASSIGN_OR_RETURN(
      const std::shared_ptr<CausalLm> drafter,
      settings.draft_models->get(job.request.draft_model_dir, job.request.draft_layers));
  const auto start = Clock::now();
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<PromptState> state,
                         drafter->prefill(prompt->token_ids, {}));
  std::vector<ArmRequest> requests;
  requests.push_back(decode_request(job, state, settings, /*capture_queries=*/false));
  KVLAB_ASSIGN_OR_RETURN(std::vector<ArmReply> replies,
                         decode_greedy(*drafter, std::move(requests), greedy_options(settings)));
  job.reply = std::move(replies.front());
  for (const int32_t id : job.reply.token_ids) {
    if (id >= target.config().vocab_size) {
      return invalid_argument(
          "the draft model wrote token {}, but the model knows {} tokens only; both must share one "
          "vocabulary",
          id, target.config().vocab_size);
    }
  }
  KvCache cache = KvCache::full(prompt, static_cast<int64_t>(job.reply.token_ids.size()));
  const absl::Status read = target.extend(job.reply.token_ids, cache, &job.queries).status();
  job.shared_s = seconds_since(start);
  return read;
}

// The first `num_tokens` of the job's reply without the stop id that ended it.
Draft part_of(const DraftJob& job, int64_t num_tokens, const std::vector<int32_t>& stop_ids) {
  const std::vector<int32_t>& ids = job.reply.token_ids;
  auto usable = static_cast<int64_t>(ids.size());
  if (usable > 1 && contains(stop_ids, ids.back())) {
    --usable;
  }
  const int64_t count = std::min(num_tokens, usable);
  Draft draft;
  draft.token_ids.assign(ids.begin(), ids.begin() + count);
  draft.stopped = count < num_tokens || contains(stop_ids, draft.token_ids.back());
  for (size_t layer = 0; layer < job.queries.queries.size(); ++layer) {
    draft.queries.queries.push_back(job.queries.queries[layer].narrow(1, 0, count));
    draft.queries.keys.push_back(job.queries.keys[layer].narrow(1, 0, count));
  }
  return draft;
}

// The job's reply cut to the sample's length.
ArmReply full_reply_of(DraftJob& job, int64_t max_new_tokens) {
  ArmReply reply = std::move(job.reply);
  if (static_cast<int64_t>(reply.token_ids.size()) > max_new_tokens) {
    reply.token_ids.resize(max_new_tokens);
    reply.stop_reason = StopReason::kMaxNewTokens;
  }
  return reply;
}

// Rows that run behind the prompt, once for every request that asks for the same ones.
struct AppendedRun {
  AppendedRows rows;
  CapturedQueries captured;
  double run_s = 0;
};

// Null where the request has none.
absl::StatusOr<const AppendedRun*> run_appended(CausalLm& model, const PromptState& prompt,
                                                const SelectionRequest& request,
                                                std::list<AppendedRun>& runs) {
  if (request.budget.entries >= prompt.prompt_len()) {
    return nullptr;  // everything is kept, and nobody is asked
  }
  KVLAB_ASSIGN_OR_RETURN(AppendedRows rows, request.policy->appended_rows(model.config()));
  if (rows.count() == 0) {
    return nullptr;
  }
  for (const AppendedRun& run : runs) {
    if (run.rows.embeddings.is_same(rows.embeddings) && run.rows.adapter == rows.adapter) {
      return &run;
    }
  }
  const auto start = Clock::now();
  KVLAB_ASSIGN_OR_RETURN(CapturedQueries captured,
                         model.run_rows(prompt, rows.embeddings, rows.adapter.get()));
  runs.push_back({std::move(rows), std::move(captured), seconds_since(start)});
  return &runs.back();
}

}  // namespace

absl::StatusOr<std::shared_ptr<CausalLm>> DraftModels::get(const std::string& draft_model_dir,
                                                           int64_t layers) {
  std::shared_ptr<CausalLm>& model = loaded_[{draft_model_dir, layers}];
  if (model == nullptr) {
    LoadOptions options = options_;
    options.num_layers = layers;
    KVLAB_ASSIGN_OR_RETURN(
        model, CausalLm::load(
                   draft_model_dir.empty() ? model_dir_ : std::filesystem::path(draft_model_dir),
                   options));
  }
  return model;
}

absl::StatusOr<PrefillNeeds> combined_needs(std::span<const EvictionPolicy* const> policies) {
  PrefillNeeds all;
  const EvictionPolicy* with_moments = nullptr;
  for (const EvictionPolicy* policy : policies) {
    const PrefillNeeds needs = policy->needs();
    all.tail_queries = std::max(all.tail_queries, needs.tail_queries);
    all.attention_sums |= needs.attention_sums;
    if (!needs.query_moments) {
      continue;
    }
    if (with_moments != nullptr && needs.moments_from != all.moments_from) {
      return invalid_argument(
          "{} leaves the first {} prompt tokens out of its statistics and {} the first {}; methods "
          "that share a sweep must agree",
          with_moments->label(), all.moments_from, policy->label(), needs.moments_from);
    }
    all.query_moments = true;
    all.moments_from = needs.moments_from;
    with_moments = policy;
  }
  return all;
}

absl::StatusOr<SelectionBatch> select_entries(CausalLm& model,
                                              const std::shared_ptr<const PromptState>& prompt,
                                              std::span<const SelectionRequest> requests,
                                              const SelectionSettings& settings) {
  std::vector<DraftJob> jobs;
  std::vector<std::optional<DraftPart>> parts(requests.size());
  std::vector<absl::StatusOr<SelectedArm>> arms(requests.size(), SelectedArm{});
  const auto input_of = [&](const SelectionRequest& request) {
    return SelectionInput{.prompt = prompt.get(),
                          .config = &model.config(),
                          .budget = request.budget,
                          .draft = nullptr,
                          .model = &model};
  };
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto start = Clock::now();
    absl::StatusOr<std::optional<DraftRequest>> wanted =
        requests[i].policy->draft_request(input_of(requests[i]));
    if (!wanted.ok()) {
      arms[i] = wanted.status();
    } else if (wanted->has_value()) {
      arms[i]->first_stage_s = seconds_since(start);
      parts[i] = add_draft(**std::move(wanted), settings, jobs);
    }
  }
  if (settings.want_full_reply) {
    DraftRequest whole;
    whole.cache = DraftRequest::Cache::kFull;
    add_draft(std::move(whole), settings, jobs);
  }
  KVLAB_RETURN_IF_ERROR(decode_own_drafts(model, prompt, settings, jobs));
  for (DraftJob& job : jobs) {
    if (job.by_other_model()) {
      job.status = decode_other_draft(model, prompt, settings, job);
      if (absl::IsCancelled(job.status)) {
        return job.status;
      }
    }
  }
  std::list<AppendedRun> appended_runs;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!arms[i].ok()) {
      continue;
    }
    SelectionInput input = input_of(requests[i]);
    const absl::StatusOr<const AppendedRun*> appended =
        run_appended(model, *prompt, requests[i], appended_runs);
    if (!appended.ok()) {
      arms[i] = appended.status();
      continue;
    }
    input.appended = *appended != nullptr ? &(*appended)->captured : nullptr;
    Draft draft;
    if (parts[i]) {
      const DraftJob& job = jobs[parts[i]->job];
      if (!job.status.ok()) {
        arms[i] = with_context(job.status, requests[i].policy->label());
        continue;
      }
      draft = part_of(job, parts[i]->num_tokens, settings.stop_ids);
      input.draft = &draft;
      arms[i]->draft_ids = draft.token_ids;
      arms[i]->draft_s = job.shared_s;
    }
    absl::StatusOr<SelectionResult> selected = requests[i].policy->select(input);
    if (selected.ok()) {
      arms[i]->result = *std::move(selected);
      arms[i]->result.cost.query_s += *appended != nullptr ? (*appended)->run_s : 0;
    } else {
      arms[i] = selected.status();
    }
  }
  SelectionBatch batch;
  batch.arms = std::move(arms);
  for (DraftJob& job : jobs) {
    if (job.holds_full_reply(settings) && !batch.full_reply) {
      batch.full_reply = full_reply_of(job, settings.max_new_tokens);
    }
  }
  return batch;
}

}  // namespace kvlab
