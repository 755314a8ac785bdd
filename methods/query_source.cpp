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

  absl::StatusOr<std::vector<QueryRows>> rows(const SelectionInput& input) const override {
    return tail_and_following_rows(input, num_rows_, nullptr, false, false);
  }

 private:
  int64_t num_rows_;
};

}  // namespace

std::vector<QueryRows> tail_and_following_rows(const SelectionInput& input, int64_t tail_rows,
                                               const CapturedQueries* after, bool own_keys,
                                               bool mask_as_prompt) {
  const PromptState& prompt = *input.prompt;
  const int64_t prompt_len = prompt.prompt_len();
  const int64_t tail = std::min(tail_rows, prompt_len);
  const int64_t following = after == nullptr ? 0 : after->queries.front().size(1);
  const int64_t total = tail + following;
  const int64_t sliding_window = input.config == nullptr ? 0 : input.config->sliding_window;
  // Logical position of the first row as the mask sees it.
  const int64_t first = prompt_len - (mask_as_prompt ? std::min(total, prompt_len) : tail);

  QueryRows shape;
  for (int64_t row = 0; row < total; ++row) {
    const int64_t position = first + row;
    shape.visible.push_back(std::min(position + 1, prompt_len));
    shape.first_visible.push_back(
        sliding_window > 0 ? std::max<int64_t>(position + 1 - sliding_window, 0) : 0);
    shape.extra_visible.push_back(own_keys ? std::max<int64_t>(row + 1 - tail, 0) : 0);
  }

  std::vector<QueryRows> rows;
  rows.reserve(prompt.layers.size());
  for (size_t layer = 0; layer < prompt.layers.size(); ++layer) {
    QueryRows of_layer = shape;
    if (tail > 0) {
      const at::Tensor& kept = prompt.layers[layer].tail_queries;
      KVLAB_CHECK(kept.defined() && kept.size(1) >= tail);
      of_layer.queries = kept.narrow(1, kept.size(1) - tail, tail);
    }
    if (following > 0) {
      const at::Tensor& queries = after->queries[layer];
      of_layer.queries =
          tail > 0 ? at::cat({of_layer.queries, queries.to(of_layer.queries.scalar_type())}, 1)
                   : queries;
      if (own_keys) {
        KVLAB_CHECK(layer < after->keys.size() && after->keys[layer].defined());
        of_layer.extra_keys = after->keys[layer];
      }
    }
    rows.push_back(std::move(of_layer));
  }
  return rows;
}

std::unique_ptr<QuerySource> make_tail_source(int64_t num_rows) {
  return std::make_unique<TailSource>(num_rows);
}

}  // namespace kvlab
