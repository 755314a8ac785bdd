#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/kernels/portable_math.h"
#include "harness/kernels/prefill_attention_kernels.h"

namespace kvlab {
namespace {

constexpr int64_t kLanes = 16;  // queries side by side
constexpr float kLowest = -1e30F;

// Up to kLanes queries, everything widened to float32.
template <typename Element>
class Block final {
 public:
  Block(const PrefillBlock& block, int64_t q_begin, int64_t q_count)
      : block_(block),
        args_(*block.args),
        q_begin_(q_begin),
        q_count_(q_count),
        first_position_(args_.kv_len - args_.q_len + q_begin),
        queries_(block.scratch),
        output_(queries_ + kLanes * args_.head_dim),
        weights_(output_ + kLanes * args_.head_dim),
        rows_(weights_ + kLanes * kKeyBlock) {}

  void run() {
    load_queries();
    const int64_t last_position = first_position_ + q_count_ - 1;
    int64_t first_key = 0;
    if (args_.sliding_window > 0 && first_position_ >= args_.sliding_window) {
      first_key = (first_position_ - args_.sliding_window + 1) / kKeyBlock * kKeyBlock;
    }
    for (int64_t key = first_key; key <= last_position; key += kKeyBlock) {
      const int64_t count = std::min(kKeyBlock, last_position + 1 - key);
      score_keys(key, count);
      soften(key, count);
      weigh_values(key, count);
    }
    store();
  }

 private:
  void load_queries() {
    std::fill(queries_, queries_ + kLanes * args_.head_dim, 0.0F);
    std::fill(output_, output_ + kLanes * args_.head_dim, 0.0F);
    std::fill(largest_, largest_ + kLanes, kLowest);
    for (int64_t lane = 0; lane < q_count_; ++lane) {
      const Element* query = row_of<Element>(args_.queries, block_.head, q_begin_ + lane);
      for (int64_t d = 0; d < args_.head_dim; ++d) {
        queries_[d * kLanes + lane] = to_float(query[d]);
      }
    }
  }

  const float* widen(const HeadRows& rows, int64_t row) {
    const Element* values = row_of<Element>(rows, block_.kv_head, row);
#pragma omp simd
    for (int64_t d = 0; d < args_.head_dim; ++d) {
      rows_[d] = to_float(values[d]);
    }
    return rows_;
  }

  void score_keys(int64_t key, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float* key_row = widen(args_.keys, key + i);
      float sums[kLanes] = {};
      for (int64_t d = 0; d < args_.head_dim; ++d) {
        const float value = key_row[d];
#pragma omp simd
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          sums[lane] += value * queries_[d * kLanes + lane];
        }
      }
#pragma omp simd
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        weights_[i * kLanes + lane] = sums[lane] * args_.scale;
      }
    }
  }

  bool sees(int64_t lane, int64_t key) const {
    const int64_t position = first_position_ + lane;
    return key <= position && (args_.sliding_window == 0 || key > position - args_.sliding_window);
  }

  void soften(int64_t key, int64_t count) {
    float largest[kLanes];
    std::copy_n(largest_, kLanes, largest);
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        float& score = weights_[i * kLanes + lane];
        score = sees(lane, key + i) ? score : kLowest;
        largest[lane] = std::max(largest[lane], score);
      }
    }
    float shrink[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      shrink[lane] =
          largest[lane] > largest_[lane] ? exp_portable(largest_[lane] - largest[lane]) : 1.0F;
      sum_[lane] *= shrink[lane];
      largest_[lane] = largest[lane];
    }
    for (int64_t d = 0; d < args_.head_dim; ++d) {
#pragma omp simd
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        output_[d * kLanes + lane] *= shrink[lane];
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      float* weights = weights_ + i * kLanes;
#pragma omp simd
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const float weight = exp_portable(weights[lane] - largest_[lane]);
        weights[lane] = weights[lane] > kLowest ? weight : 0.0F;
        sum_[lane] += weights[lane];
      }
    }
  }

  void weigh_values(int64_t key, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const float* value_row = widen(args_.values, key + i);
      const float* weights = weights_ + i * kLanes;
      for (int64_t d = 0; d < args_.head_dim; ++d) {
        const float value = value_row[d];
#pragma omp simd
        for (int64_t lane = 0; lane < kLanes; ++lane) {
          output_[d * kLanes + lane] += value * weights[lane];
        }
      }
    }
  }

  void store() const {
    for (int64_t lane = 0; lane < q_count_; ++lane) {
      Element* out = row_of<Element>(args_.output, block_.head, q_begin_ + lane);
      for (int64_t d = 0; d < args_.head_dim; ++d) {
        out[d] = from_float<Element>(output_[d * kLanes + lane] / sum_[lane]);
      }
      if (args_.logsumexp != nullptr) {
        args_.logsumexp[block_.head * args_.q_len + q_begin_ + lane] =
            largest_[lane] + std::log(sum_[lane]);
      }
    }
  }

  const PrefillBlock& block_;
  const PrefillAttentionArgs& args_;
  const int64_t q_begin_;
  const int64_t q_count_;
  const int64_t first_position_;
  float* queries_;  // [head_dim, kLanes]
  float* output_;   // [head_dim, kLanes], not yet divided
  float* weights_;  // [kKeyBlock, kLanes]
  float* rows_;     // [head_dim]
  float largest_[kLanes];
  float sum_[kLanes] = {};
};

}  // namespace

void prefill_block_portable(const PrefillBlock& block) {
  for (int64_t q = 0; q < block.q_count; q += kLanes) {
    const int64_t count = std::min(kLanes, block.q_count - q);
    if (block.args->type == ElementType::kFloat32) {
      Block<float>(block, block.q_begin + q, count).run();
    } else {
      Block<BFloat16>(block, block.q_begin + q, count).run();
    }
  }
}

}  // namespace kvlab
