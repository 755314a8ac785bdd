// Scores from attention: query rows of some source, or the sums that prefill recorded.
#include <utility>

#include "harness/base/status.h"
#include "methods/attention_mass_at.h"
#include "methods/scorers.h"

namespace kvlab {
namespace {

class AttentionScorer final : public Scorer {
 public:
  AttentionScorer(std::unique_ptr<QuerySource> source, RowReduction row_reduction)
      : source_(std::move(source)), row_reduction_(row_reduction) {}

  absl::Status check(const ModelConfig& model, std::optional<Budget> budget) const override {
    return source_->check(model, budget);
  }
  PrefillNeeds needs() const override { return source_->needs(); }
  int64_t extra_positions() const override { return source_->extra_positions(); }
  std::optional<std::string> label() const override { return source_->label(); }
  absl::StatusOr<std::optional<DraftRequest>> draft_request(
      const SelectionInput& input) const override {
    return source_->draft_request(input);
  }

  absl::Status check_by_layers() const override { return source_->check_by_layers(); }
  absl::StatusOr<AppendedRows> appended_rows(const ModelConfig& model) const override {
    return source_->appended_rows(model);
  }

  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    KVLAB_ASSIGN_OR_RETURN(LayerRows layer_rows, source_->rows(input));
    return LayerScores(
        [prompt = input.prompt, reduction = row_reduction_,
         layer_rows = std::move(layer_rows)](int64_t layer) -> absl::StatusOr<at::Tensor> {
          const QueryRows rows = layer_rows(layer);
          at::Tensor mass = attention_mass(rows, prompt->layers[layer].keys, reduction);
          if (!attention_mass_is_sound(rows, mass)) {
            return data_loss("layer {} has queries or keys that are not finite", layer);
          }
          return mass;
        });
  }

 private:
  std::unique_ptr<QuerySource> source_;
  RowReduction row_reduction_;
};

class AttentionSumsScorer final : public Scorer {
 public:
  explicit AttentionSumsScorer(bool average) : average_(average) {}

  PrefillNeeds needs() const override { return {.attention_sums = true}; }

  absl::StatusOr<LayerScores> prepare(const SelectionInput& input) const override {
    const int64_t prompt_len = input.prompt->prompt_len();
    const int64_t sliding_window = input.config == nullptr ? 0 : input.config->sliding_window;
    at::Tensor queries_that_see;
    if (average_) {
      queries_that_see = at::arange(prompt_len, 0, -1, at::kFloat);
      if (sliding_window > 0) {
        queries_that_see.clamp_max_(static_cast<double>(sliding_window));
      }
    }
    return LayerScores(
        [prompt = input.prompt, queries_that_see](int64_t layer) -> absl::StatusOr<at::Tensor> {
          const at::Tensor& sums = prompt->layers[layer].attention_sums;
          if (!sums.defined()) {
            return failed_precondition("the prefill recorded no attention sums");
          }
          return queries_that_see.defined() ? sums / queries_that_see.to(sums.device()) : sums;
        });
  }

 private:
  bool average_;
};

}  // namespace

std::unique_ptr<Scorer> make_attention_scorer(std::unique_ptr<QuerySource> source,
                                              RowReduction row_reduction) {
  return std::make_unique<AttentionScorer>(std::move(source), row_reduction);
}

std::unique_ptr<Scorer> make_attention_sums_scorer(bool average) {
  return std::make_unique<AttentionSumsScorer>(average);
}

}  // namespace kvlab
