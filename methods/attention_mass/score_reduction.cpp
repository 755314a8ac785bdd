#include "methods/attention_mass/score_reduction.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/parallel.h"

namespace kvlab {

void reduce_group(GroupReduction reduction, const float* scores, int64_t num_heads,
                  int64_t num_kv_heads, int64_t num_keys, float* out, int64_t row_stride) {
  row_stride = row_stride == 0 ? num_keys : row_stride;
  const int64_t group_size = num_heads / num_kv_heads;
  const float divisor = static_cast<float>(group_size);
  parallel_for(num_kv_heads, [&](int64_t kv_head, int) {
    float* row = out + kv_head * num_keys;
    std::copy_n(scores + kv_head * group_size * row_stride, num_keys, row);
    for (int64_t member = 1; member < group_size; ++member) {
      const float* other = scores + (kv_head * group_size + member) * row_stride;
      if (reduction == GroupReduction::kMax) {
        for (int64_t key = 0; key < num_keys; ++key) {
          row[key] = std::max(row[key], other[key]);
        }
      } else {
        for (int64_t key = 0; key < num_keys; ++key) {
          row[key] += other[key];
        }
      }
    }
    if (reduction == GroupReduction::kMean) {
      for (int64_t key = 0; key < num_keys; ++key) {
        row[key] /= divisor;
      }
    }
  });
}

void pool_scores(PoolKind kind, int64_t kernel, const float* scores, int64_t num_rows,
                 int64_t num_keys, float* out, int64_t row_stride) {
  row_stride = row_stride == 0 ? num_keys : row_stride;
  KVLAB_CHECK(kind == PoolKind::kNone || (kernel >= 1 && kernel % 2 == 1));
  if (kind == PoolKind::kNone) {
    for (int64_t row = 0; row < num_rows; ++row) {
      std::copy_n(scores + row * row_stride, num_keys, out + row * num_keys);
    }
    return;
  }
  const int64_t half = kernel / 2;
  const float divisor = static_cast<float>(kernel);
  parallel_for(num_rows, [&](int64_t row, int) {
    const float* in = scores + row * row_stride;
    float* pooled = out + row * num_keys;
    // One pass per offset, so that the inner loop runs along the row.
    std::fill(pooled, pooled + num_keys, 0.0F);
    if (kind == PoolKind::kMax) {
      std::copy_n(in, num_keys, pooled);
    }
    for (int64_t offset = -half; offset <= half; ++offset) {
      const int64_t begin = std::max<int64_t>(0, -offset);
      const int64_t end = std::min(num_keys, num_keys - offset);
      if (kind == PoolKind::kMax) {
        for (int64_t key = begin; key < end; ++key) {
          pooled[key] = std::max(pooled[key], in[key + offset]);
        }
      } else {
        for (int64_t key = begin; key < end; ++key) {
          pooled[key] += in[key + offset];
        }
      }
    }
    if (kind == PoolKind::kAverage) {
      for (int64_t key = 0; key < num_keys; ++key) {
        pooled[key] /= divisor;
      }
    }
  });
}

}  // namespace kvlab
