// The inner loops of prefill_attention on float32 products, compiled once for any CPU and once for
// AVX2.
#pragma once

#include <algorithm>
#include <cmath>

#include "harness/kernels/prefill_attention_kernels.h"
#include "harness/kernels/vec.h"

namespace kvlab {
namespace {

constexpr int64_t kQueryLanes = 16;
constexpr float kLowestScore = -1e30F;

// A block's queries in groups of kQueryLanes, which meet a block of keys one after the other while
// it is near.
template <typename Element>
class QueryBlock final {
 public:
  explicit QueryBlock(const PrefillBlock& block)
      : block_(block),
        args_(*block.args),
        head_dim_(args_.head_dim),
        first_position_(args_.kv_len - args_.q_len + block.q_begin),
        queries_(block.scratch),
        output_(queries_ + kQueryBlock * head_dim_),
        scores_(output_ + kQueryBlock * head_dim_),
        factor_(args_.scale * kLog2E) {
    if (block.wide_keys != nullptr) {
      keys_ = block.wide_keys;
      values_ = block.wide_values;
      key_stride_ = value_stride_ = head_dim_;
    } else {
      keys_ = row_of<float>(args_.keys, block.kv_head, 0);
      values_ = row_of<float>(args_.values, block.kv_head, 0);
      key_stride_ = args_.keys.row_stride;
      value_stride_ = args_.values.row_stride;
    }
  }

  void run() {
    load_queries();
    const int64_t last_position = first_position_ + block_.q_count - 1;
    int64_t first_key = 0;
    if (args_.sliding_window > 0 && first_position_ >= args_.sliding_window) {
      first_key = (first_position_ - args_.sliding_window + 1) / kKeyBlock * kKeyBlock;
    }
    for (int64_t key = first_key; key <= last_position; key += kKeyBlock) {
      for (int64_t lane = 0; lane < block_.q_count; lane += kQueryLanes) {
        meet_keys(lane, key);
      }
    }
    store();
  }

 private:
  // Keys from `key` on, for the group of queries that starts at `lane`.
  void meet_keys(int64_t lane, int64_t key) {
    const int64_t lanes = std::min(kQueryLanes, block_.q_count - lane);
    const int64_t first = first_position_ + lane;
    const int64_t last = first + lanes - 1;
    const int64_t count = std::min(kKeyBlock, last + 1 - key);
    if (count <= 0 ||
        (args_.sliding_window > 0 && key + count <= first - args_.sliding_window + 1)) {
      return;  // no query of the group sees them
    }
    score_keys(lane, key, count);
    const bool masked =
        key + count - 1 > first || (args_.sliding_window > 0 && key <= last - args_.sliding_window);
    if (masked) {
      soften<true>(lane, key, count);
    } else {
      soften<false>(lane, key, count);
    }
    weigh_values(lane, key, count);
  }

  void load_queries() {
    std::fill_n(queries_, kQueryBlock * head_dim_, 0.0F);
    std::fill_n(output_, kQueryBlock * head_dim_, 0.0F);
    std::fill_n(largest_, kQueryBlock, kLowestScore);
    for (int64_t i = 0; i < block_.q_count; ++i) {
      const Element* query = row_of<Element>(args_.queries, block_.head, block_.q_begin + i);
      float* column = group_of(queries_, i / kQueryLanes * kQueryLanes) + i % kQueryLanes;
      for (int64_t d = 0; d < head_dim_; ++d) {
        column[d * kQueryLanes] = to_float(query[d]);
      }
    }
  }

  static constexpr int kDegree = sizeof(Element) == 4 ? 6 : 4;  // as exact as the elements

  // [head_dim, kQueryLanes] of the group that starts at `lane`.
  float* group_of(float* all, int64_t lane) const { return all + lane * head_dim_; }

  void score_keys(int64_t lane, int64_t key, int64_t count) {
    const float* rows = keys_ + key * key_stride_;
    const float* queries = group_of(queries_, lane);
    // The first group asks for the next block's keys and values.
    const int64_t next_bytes = head_dim_ * static_cast<int64_t>(sizeof(float));
    const int64_t last_next = lane == 0 ? args_.kv_len - key - kKeyBlock : 0;
    for_each_vec_tile(count, [&]<int kRows>(int64_t first) {
      for (int64_t i = first; i < std::min(first + kRows, last_next); ++i) {
        bring_near(rows + (kKeyBlock + i) * key_stride_, next_bytes);
        bring_near(values_ + (key + kKeyBlock + i) * value_stride_, next_bytes);
      }
      Vec sums[kRows][kVecsOf16] = {};
      add_tile_products<kRows>(rows + first * key_stride_, key_stride_, queries, head_dim_, sums);
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVecsOf16; ++v) {
          vec_store(scores_ + (first + r) * kQueryLanes + v * kVecFloats, sums[r][v]);
        }
      }
    });
  }

  // A vector of lanes of the scores of one key; what a lane does not see is kLowestScore.
  template <bool kMasked>
  Vec seen_scores(int64_t key_index, int64_t key, int64_t lane, int v) const {
    const Vec scores = vec_load(scores_ + key_index * kQueryLanes + v * kVecFloats);
    if constexpr (!kMasked) {
      return scores;
    }
    IntVec sees = {};
    for (int i = 0; i < kVecFloats; ++i) {
      const int64_t position = first_position_ + lane + v * kVecFloats + i;
      const int64_t place = key + key_index;
      const bool in_window = args_.sliding_window == 0 || place > position - args_.sliding_window;
      sees[i] = place <= position && in_window ? -1 : 0;
    }
    return sees ? scores : vec_set(kLowestScore);
  }

  // Turns scores into weights below the new maximum and rescales what there is.
  template <bool kMasked>
  void soften(int64_t lane, int64_t key, int64_t count) {
    const Vec factor = vec_set(factor_);
    for (int v = 0; v < kVecsOf16; ++v) {
      float* const largest_place = largest_ + lane + v * kVecFloats;
      float* const sum_place = sum_ + lane + v * kVecFloats;
      const Vec before = vec_load(largest_place);
      Vec largest = before;
      for (int64_t i = 0; i < count; ++i) {
        largest = vec_max(seen_scores<kMasked>(i, key, lane, v), largest);
      }
      Vec sum = vec_load(sum_place);
      if (std::memcmp(&before, &largest, sizeof(before)) != 0) {
        const Vec shrink = vec_exp2<6>((before - largest) * factor);
        sum *= shrink;
        float* output = group_of(output_, lane) + v * kVecFloats;
        for (int64_t d = 0; d < head_dim_; ++d) {
          vec_store(output + d * kQueryLanes, vec_load(output + d * kQueryLanes) * shrink);
        }
        vec_store(largest_place, largest);
      }
      for (int64_t i = 0; i < count; ++i) {
        const Vec scores = seen_scores<kMasked>(i, key, lane, v);
        Vec weights = vec_exp2<kDegree>((scores - largest) * factor);
        if constexpr (kMasked) {
          weights = scores == kLowestScore ? Vec{} : weights;
        }
        sum += weights;
        vec_store(scores_ + i * kQueryLanes + v * kVecFloats, weights);
      }
      vec_store(sum_place, sum);
    }
  }

  void weigh_values(int64_t lane, int64_t key, int64_t count) {
    float* output = group_of(output_, lane);
    for_each_vec_tile(head_dim_, [&]<int kDims>(int64_t first) {
      Vec sums[kDims][kVecsOf16];
      for (int d = 0; d < kDims; ++d) {
        for (int v = 0; v < kVecsOf16; ++v) {
          sums[d][v] = vec_load(output + (first + d) * kQueryLanes + v * kVecFloats);
        }
      }
      const float* values = values_ + key * value_stride_ + first;
      for (int64_t i = 0; i < count; ++i, values += value_stride_) {
        Vec weights[kVecsOf16];
#pragma GCC unroll 4
        for (int v = 0; v < kVecsOf16; ++v) {
          weights[v] = vec_load(scores_ + i * kQueryLanes + v * kVecFloats);
        }
#pragma GCC unroll 6
        for (int d = 0; d < kDims; ++d) {
          const Vec value = vec_set(values[d]);
#pragma GCC unroll 4
          for (int v = 0; v < kVecsOf16; ++v) {
            sums[d][v] = vec_fma(value, weights[v], sums[d][v]);
          }
        }
      }
      for (int d = 0; d < kDims; ++d) {
        for (int v = 0; v < kVecsOf16; ++v) {
          vec_store(output + (first + d) * kQueryLanes + v * kVecFloats, sums[d][v]);
        }
      }
    });
  }

  void store() const {
    for (int64_t i = 0; i < block_.q_count; ++i) {
      Element* out = row_of<Element>(args_.output, block_.head, block_.q_begin + i);
      const float* column = group_of(output_, i / kQueryLanes * kQueryLanes) + i % kQueryLanes;
      const float inverse = 1.0F / sum_[i];
      for (int64_t d = 0; d < head_dim_; ++d) {
        out[d] = from_float<Element>(column[d * kQueryLanes] * inverse);
      }
      if (args_.logsumexp != nullptr) {
        args_.logsumexp[block_.head * args_.q_len + block_.q_begin + i] =
            largest_[i] * args_.scale + std::log(sum_[i]);
      }
    }
  }

  const PrefillBlock& block_;
  const PrefillAttentionArgs& args_;
  const int64_t head_dim_;
  const int64_t first_position_;  // of the block's first query
  const float* keys_ = nullptr;
  const float* values_ = nullptr;
  int64_t key_stride_ = 0;
  int64_t value_stride_ = 0;
  float* queries_;  // groups of [head_dim, kQueryLanes]
  float* output_;   // the same, not yet divided
  float* scores_;   // [kKeyBlock, kQueryLanes]: of one group
  const float factor_;
  float largest_[kQueryBlock];  // of the scores before scaling
  float sum_[kQueryBlock] = {};
};

void prefill_block(const PrefillBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    QueryBlock<float>(block).run();
  } else {
    QueryBlock<BFloat16>(block).run();
  }
}

}  // namespace
}  // namespace kvlab
