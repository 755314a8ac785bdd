#include "methods/choose.h"

#include <numeric>

#include "harness/base/check.h"
#include "harness/kernels/parallel.h"
#include "methods/attention_mass/top_k.h"

namespace kvlab {

std::vector<std::vector<int32_t>> choose_entries(const ChooseInput& input) {
  const int64_t kept_anyway = input.sinks + input.window;
  KVLAB_CHECK(kept_anyway <= input.budget && input.budget <= input.prompt_len);
  const int64_t num_candidates = input.prompt_len - kept_anyway;
  std::vector<int64_t> counts(input.num_kv_heads, input.budget - kept_anyway);
  if (input.adaptive) {
    std::vector<float> candidates;
    candidates.reserve(input.num_kv_heads * num_candidates);
    for (int64_t head = 0; head < input.num_kv_heads; ++head) {
      const auto row = input.scores.subspan(head * input.prompt_len + input.sinks, num_candidates);
      candidates.insert(candidates.end(), row.begin(), row.end());
    }
    counts = adaptive_counts({.scores = candidates,
                              .num_heads = input.num_kv_heads,
                              .num_candidates = num_candidates,
                              .budget = input.budget,
                              .protected_entries = kept_anyway},
                             *input.adaptive);
  }
  std::vector<std::vector<int32_t>> kept(input.num_kv_heads);
  parallel_for(input.num_kv_heads, [&](int64_t head, int) {
    const auto row = input.scores.subspan(head * input.prompt_len + input.sinks, num_candidates);
    std::vector<int32_t>& positions = kept[head];
    positions.reserve(kept_anyway + counts[head]);
    for (int64_t position = 0; position < input.sinks; ++position) {
      positions.push_back(static_cast<int32_t>(position));
    }
    for (const int32_t candidate : top_positions(row, counts[head])) {
      positions.push_back(candidate + static_cast<int32_t>(input.sinks));
    }
    for (int64_t position = input.prompt_len - input.window; position < input.prompt_len;
         ++position) {
      positions.push_back(static_cast<int32_t>(position));
    }
  });
  return kept;
}

std::vector<std::vector<int32_t>> keep_all_entries(int64_t num_kv_heads, int64_t prompt_len) {
  std::vector<int32_t> all(prompt_len);
  std::iota(all.begin(), all.end(), 0);
  return std::vector<std::vector<int32_t>>(num_kv_heads, all);
}

}  // namespace kvlab
