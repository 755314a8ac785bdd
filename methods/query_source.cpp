#include "methods/query_source.h"

#include <algorithm>
#include <utility>

#include "harness/base/check.h"

namespace kvlab {
namespace {

class TailSource final : public QuerySource {
 public:
  explicit TailSource(int64_t num_rows) : num_rows_(num_rows) {}

  PrefillNeeds needs() const override { return {.tail_queries = num_rows_}; }

  absl::StatusOr<LayerRows> rows(const SelectionInput& input) const override {
    return tail_and_following_rows(input, num_rows_, nullptr, false, false);
  }

 private:
  int64_t num_rows_;
};

}  // namespace

LayerRows tail_and_following_rows(const SelectionInput& input, int64_t tail_rows,
                                  const CapturedQueries* after, bool own_keys,
                                  bool mask_as_prompt) {
  const int64_t sliding_window = input.config == nullptr ? 0 : input.config->sliding_window;
  // Rows that are masked here as they attended.
  const bool as_they_attended = tail_rows == 0 && own_keys && !mask_as_prompt &&
                                input.config != nullptr && sliding_window == 0;
  return [prompt = input.prompt, tail_rows, after, own_keys, mask_as_prompt, sliding_window,
          as_they_attended](int64_t layer_index) {
    const auto layer = static_cast<size_t>(layer_index);
    const int64_t prompt_len = prompt->prompt_len();
    const int64_t tail = std::min(tail_rows, prompt_len);
    const int64_t following = after == nullptr ? 0 : after->queries[layer].size(1);
    const int64_t total = tail + following;
    // Logical position of the first row as the mask sees it.
    const int64_t first = prompt_len - (mask_as_prompt ? std::min(total, prompt_len) : tail);

    QueryRows rows;
    for (int64_t row = 0; row < total; ++row) {
      const int64_t position = first + row;
      rows.visible.push_back(std::min(position + 1, prompt_len));
      rows.first_visible.push_back(
          sliding_window > 0 ? std::max<int64_t>(position + 1 - sliding_window, 0) : 0);
      rows.extra_visible.push_back(own_keys ? std::max<int64_t>(row + 1 - tail, 0) : 0);
    }
    if (tail > 0) {
      const at::Tensor& kept = prompt->layers[layer].tail_queries;
      KVLAB_CHECK(kept.defined() && kept.size(1) >= tail);
      rows.queries = kept.narrow(1, kept.size(1) - tail, tail);
    }
    if (following > 0) {
      const at::Tensor& queries = after->queries[layer];
      rows.queries =
          tail > 0 ? at::cat({rows.queries, queries.to(rows.queries.scalar_type())}, 1) : queries;
      if (own_keys) {
        KVLAB_CHECK(layer < after->keys.size() && after->keys[layer].defined());
        rows.extra_keys = after->keys[layer];
        if (as_they_attended && layer < after->logsumexp.size()) {
          rows.logsumexp = after->logsumexp[layer];
        }
      }
    }
    return rows;
  };
}

std::unique_ptr<QuerySource> make_tail_source(int64_t num_rows) {
  return std::make_unique<TailSource>(num_rows);
}

}  // namespace kvlab
