// From scores to kept positions: what is always kept, and the best of the rest. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "methods/allocation.h"

namespace kvlab {

struct ChooseInput {
  std::span<const float> scores;  // [num_kv_heads, prompt_len], finite; protected ones are not read
  int64_t num_kv_heads = 0;
  int64_t prompt_len = 0;
  int64_t budget = 0;  // entries per KV head; between sinks + window and prompt_len
  int64_t sinks = 0;   // first entries, always kept
  int64_t window = 0;  // last entries, always kept
  std::optional<AdaptiveOptions> adaptive;  // heads share num_kv_heads * budget by score
};

// Kept positions per KV head, ascending. Among equal scores the earlier position is kept.
std::vector<std::vector<int32_t>> choose_entries(const ChooseInput& input);

// Every position, for every KV head.
std::vector<std::vector<int32_t>> keep_all_entries(int64_t num_kv_heads, int64_t prompt_len);

}  // namespace kvlab
