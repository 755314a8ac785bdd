// Queries of a draft of the reply: decoded on an evicted cache, on the full one, or by another
// model.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

#include "harness/base/status.h"
#include "methods/query_source.h"

namespace kvlab {
namespace {

// Models of one family fill their vocabulary up to different sizes (Qwen2.5: 151,936 and 152,064).
// A token that is drawn beyond the model's is an error when it is drawn.
constexpr int64_t kMostPadding = 1024;

absl::StatusOr<LayerRows> draft_rows(const SelectionInput& input,
                                     const DraftSourceOptions& options) {
  if (input.draft == nullptr ||
      input.draft->queries.queries.size() != input.prompt->layers.size()) {
    return failed_precondition("the method asked for a draft and got none with queries");
  }
  return tail_and_following_rows(input, options.tail_rows, &input.draft->queries, options.own_keys,
                                 options.mask_as_prompt);
}

// The first `count` tokens at most, with their queries and keys.
Draft beginning_of(const Draft& draft, int64_t count) {
  Draft beginning = draft;
  const auto cut = [count](std::vector<at::Tensor>& layers) {
    for (at::Tensor& rows : layers) {
      rows = rows.narrow(1, 0, std::min(count, rows.size(1)));
    }
  };
  beginning.token_ids.resize(std::min(static_cast<size_t>(count), draft.token_ids.size()));
  cut(beginning.queries.queries);
  cut(beginning.queries.keys);
  cut(beginning.queries.logsumexp);
  return beginning;
}

absl::Status refuse_by_layers() {
  return failed_precondition(
      "a draft is decoded over all layers of the finished prompt before any of them is evicted");
}

class StagedDraftSource final : public QuerySource {
 public:
  StagedDraftSource(const DraftSourceOptions& options, std::unique_ptr<EvictionPolicy> first_stage,
                    int64_t first_stage_budget)
      : options_(options), first_stage_(std::move(first_stage)), budget_(first_stage_budget) {}

  absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const override {
    const std::optional<Budget> stage_budget = budget_ > 0 ? Budget{budget_} : budget;
    return with_context(first_stage_->check(model, stage_budget), "first stage");
  }

  absl::Status check_by_layers() const override { return refuse_by_layers(); }

  PrefillNeeds needs() const override {
    PrefillNeeds needs = first_stage_->needs();
    needs.tail_queries = std::max(needs.tail_queries, options_.tail_rows);
    return needs;
  }

  int64_t extra_positions() const override { return options_.draft_tokens; }

  absl::StatusOr<std::optional<DraftRequest>> draft_request(
      const SelectionInput& input) const override {
    SelectionInput stage = input;
    stage.draft = nullptr;
    if (budget_ > 0) {
      stage.budget = {budget_};
    }
    KVLAB_ASSIGN_OR_RETURN(SelectionResult first, first_stage_->select(stage));
    DraftRequest request;
    request.num_tokens = options_.draft_tokens;
    request.cache = DraftRequest::Cache::kSelection;
    request.selection = std::move(first.selection);
    return std::optional<DraftRequest>(std::move(request));
  }

  absl::StatusOr<LayerRows> rows(const SelectionInput& input) const override {
    return draft_rows(input, options_);
  }

 private:
  DraftSourceOptions options_;
  std::unique_ptr<EvictionPolicy> first_stage_;
  int64_t budget_;
};

class FullDraftSource final : public QuerySource {
 public:
  FullDraftSource(const DraftSourceOptions& options, DraftModel draft_model)
      : options_(options), draft_model_(std::move(draft_model)) {}

  absl::Status check(const ModelConfig& model, std::optional<Budget> /*budget*/) const override {
    if (draft_model_.layers >= model.num_layers) {
      return invalid_argument(
          "draft_layers is {}, but the model has {}; give fewer, or 0 for the whole model",
          draft_model_.layers, model.num_layers);
    }
    if (draft_model_.model_dir.empty()) {
      return absl::OkStatus();
    }
    KVLAB_ASSIGN_OR_RETURN(const ModelConfig draft, ModelConfig::load(draft_model_.model_dir));
    if (std::abs(draft.vocab_size - model.vocab_size) > kMostPadding) {
      return invalid_argument(
          "the draft model {} has a vocabulary of {} tokens, the model one of {}; both must share "
          "one vocabulary",
          draft_model_.model_dir, draft.vocab_size, model.vocab_size);
    }
    return absl::OkStatus();
  }

  absl::Status check_by_layers() const override { return refuse_by_layers(); }

  PrefillNeeds needs() const override { return {.tail_queries = options_.tail_rows}; }

  // A whole reply uses the positions of the reply itself.
  int64_t extra_positions() const override { return options_.is_reply ? 0 : options_.draft_tokens; }

  std::optional<std::string> label() const override {
    if (options_.is_reply || !draft_model_.model_dir.empty()) {
      return std::nullopt;
    }
    return draft_model_.layers == 0
               ? std::string("draft: the model itself")
               : fmt::format("draft: its first {} layers", draft_model_.layers);
  }

  absl::StatusOr<std::optional<DraftRequest>> draft_request(
      const SelectionInput& /*input*/) const override {
    DraftRequest request;
    request.cache = DraftRequest::Cache::kFull;
    request.num_tokens = options_.is_reply ? 0 : options_.draft_tokens;  // 0: the whole reply
    request.draft_model_dir = draft_model_.model_dir;
    request.draft_layers = draft_model_.layers;
    return std::optional<DraftRequest>(std::move(request));
  }

  absl::StatusOr<LayerRows> rows(const SelectionInput& input) const override {
    if (!options_.is_reply || options_.draft_tokens == 0 || input.draft == nullptr) {
      return draft_rows(input, options_);
    }
    const auto beginning =
        std::make_shared<const Draft>(beginning_of(*input.draft, options_.draft_tokens));
    SelectionInput cut = input;
    cut.draft = beginning.get();
    KVLAB_ASSIGN_OR_RETURN(const LayerRows rows, draft_rows(cut, options_));
    return LayerRows([beginning, rows](int64_t layer) { return rows(layer); });
  }

 private:
  DraftSourceOptions options_;
  DraftModel draft_model_;
};

}  // namespace

std::unique_ptr<QuerySource> make_staged_draft_source(const DraftSourceOptions& options,
                                                      std::unique_ptr<EvictionPolicy> first_stage,
                                                      int64_t first_stage_budget) {
  return std::make_unique<StagedDraftSource>(options, std::move(first_stage), first_stage_budget);
}

std::unique_ptr<QuerySource> make_full_draft_source(const DraftSourceOptions& options,
                                                    const DraftModel& draft_model) {
  return std::make_unique<FullDraftSource>(options, draft_model);
}

}  // namespace kvlab
