#include "methods/lookahead_kv/lookahead_source.h"

#include <mutex>
#include <utility>

#include "harness/base/status.h"
#include "methods/lookahead_kv/adapter.h"

namespace kvlab {
namespace {

class LookaheadSource final : public QuerySource {
 public:
  explicit LookaheadSource(LookaheadSourceOptions options) : options_(std::move(options)) {}

  absl::Status check(const ModelConfig& model, std::optional<Budget> /*budget*/) const override {
    return adapter_for(model).status();
  }

  PrefillNeeds needs() const override { return {.tail_queries = options_.tail_rows}; }

  int64_t extra_positions() const override { return options_.num_tokens; }

  absl::StatusOr<AppendedRows> appended_rows(const ModelConfig& model) const override {
    KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<const LookaheadAdapter> adapter,
                           adapter_for(model));
    return AppendedRows{.embeddings = adapter->tokens(), .adapter = adapter};
  }

  absl::StatusOr<LayerRows> rows(const SelectionInput& input) const override {
    if (input.appended != nullptr) {
      return following_rows(input, input.appended);
    }
    if (input.model == nullptr || input.config == nullptr) {
      return failed_precondition("lookahead tokens need the model that made the prompt state");
    }
    KVLAB_ASSIGN_OR_RETURN(const AppendedRows appended, appended_rows(*input.config));
    KVLAB_ASSIGN_OR_RETURN(
        CapturedQueries captured,
        input.model->run_rows(*input.prompt, appended.embeddings, appended.adapter.get()));
    const auto rows = std::make_shared<const CapturedQueries>(std::move(captured));
    return LayerRows([rows, of_layer = following_rows(input, rows.get())](int64_t layer) {
      return of_layer(layer);
    });
  }

 private:
  LayerRows following_rows(const SelectionInput& input, const CapturedQueries* rows) const {
    return tail_and_following_rows(input, options_.tail_rows, rows, /*own_keys=*/true,
                                   /*mask_as_prompt=*/false);
  }

  absl::StatusOr<std::shared_ptr<const LookaheadAdapter>> adapter_for(
      const ModelConfig& config) const {
    const std::scoped_lock lock(mutex_);
    const std::string model = architecture_hash(config);
    if (adapter_ == nullptr || model != loaded_for_) {
      KVLAB_ASSIGN_OR_RETURN(
          adapter_, LookaheadAdapter::load(options_.adapter, config,
                                           {.accept_unknown_base = options_.accept_unknown_base}));
      loaded_for_ = model;
    }
    return adapter_;
  }

  LookaheadSourceOptions options_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const LookaheadAdapter> adapter_;
  mutable std::string loaded_for_;
};

}  // namespace

std::unique_ptr<QuerySource> make_lookahead_source(const LookaheadSourceOptions& options) {
  return std::make_unique<LookaheadSource>(options);
}

}  // namespace kvlab
