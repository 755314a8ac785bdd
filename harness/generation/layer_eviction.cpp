#include "harness/generation/layer_eviction.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "harness/base/clock.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

int64_t bytes_of(const at::Tensor& tensor) {
  return tensor.defined() ? static_cast<int64_t>(tensor.nbytes()) : 0;
}

}  // namespace

int64_t layer_bytes(const LayerState& layer) {
  return bytes_of(layer.keys) + bytes_of(layer.values) + bytes_of(layer.tail_queries) +
         bytes_of(layer.attention_sums) + bytes_of(layer.query_mean) +
         bytes_of(layer.query_covariance);
}

absl::StatusOr<LayerEviction> prefill_and_evict(CausalLm& model, std::span<const int32_t> token_ids,
                                                const SelectionRequest& request,
                                                const LayerEvictionOptions& options) {
  const auto start = Clock::now();
  const EvictionPolicy& policy = *request.policy;
  KVLAB_RETURN_IF_ERROR(policy.check_by_layers());
  const auto prompt_len = static_cast<int64_t>(token_ids.size());
  LayerEviction done{
      .cache = KvCache::start(prompt_len, options.max_new_tokens), .last_logits = {}, .result = {}};
  done.result.selection.prompt_len = prompt_len;

  LayerPrefillOptions prefill;
  prefill.chunk_size = options.chunk_size;
  prefill.needs = policy.needs();
  if (request.budget.entries < prompt_len) {  // else everything is kept, and nobody is asked
    KVLAB_ASSIGN_OR_RETURN(prefill.appended, policy.appended_rows(model.config()));
  }
  std::optional<LayerSelector> select;
  prefill.on_layer = [&](int64_t layer, const PromptState& prompt,
                         const CapturedQueries& appended) -> absl::Status {
    if (!select) {
      const SelectionInput input{.prompt = &prompt,
                                 .config = &model.config(),
                                 .budget = request.budget,
                                 .draft = nullptr,
                                 .model = &model,
                                 .appended = prefill.appended.count() > 0 ? &appended : nullptr};
      KVLAB_ASSIGN_OR_RETURN(select, policy.select_by_layers(input));
    }
    KVLAB_ASSIGN_OR_RETURN(std::vector<std::vector<int32_t>> kept,
                           (*select)(layer, done.result.cost));
    const auto compact_start = Clock::now();
    const LayerState& state = prompt.layers[static_cast<size_t>(layer)];
    const int64_t full_bytes = layer_bytes(state);
    done.cache.add_layer(state, kept);
    done.compact_s += seconds_since(compact_start);
    done.peak_cache_bytes = std::max(done.peak_cache_bytes, full_bytes + done.cache.bytes());
    done.result.selection.kept.push_back(std::move(kept));
    return absl::OkStatus();
  };
  KVLAB_ASSIGN_OR_RETURN(done.last_logits, model.prefill_by_layers(token_ids, prefill));
  done.total_s = seconds_since(start);
  return done;
}

}  // namespace kvlab
