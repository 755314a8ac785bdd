// From scores per query head to scores per KV head: group reduction and pooling, in either order.
#pragma once

#include <cstdint>

namespace kvlab {

enum class GroupReduction { kMean, kMax, kSum };
enum class PoolKind { kNone, kMax, kAverage };

// scores [num_heads, num_keys], `row_stride` apart (0: num_keys) -> out [num_kv_heads, num_keys];
// query heads of one KV head lie side by side.
void reduce_group(GroupReduction reduction, const float* scores, int64_t num_heads,
                  int64_t num_kv_heads, int64_t num_keys, float* out, int64_t row_stride = 0);

// Each row of scores [num_rows, num_keys], `row_stride` apart (0: num_keys), pooled with stride 1
// and the same length -> out; `kernel` is odd. The average always divides by `kernel`, counting
// what lies outside as 0; the maximum leaves it out. `out` must not overlap `scores`.
void pool_scores(PoolKind kind, int64_t kernel, const float* scores, int64_t num_rows,
                 int64_t num_keys, float* out, int64_t row_stride = 0);

}  // namespace kvlab
