// The inner loops of add_attention_sums on float32 products, compiled once for any CPU and once for
// AVX2. Lanes are keys, packed by pack_keys_of_heads.
#pragma once

#include <algorithm>

#include "harness/kernels/vec.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

// Sixteen keys from `key` on, and the weights that query rows give them.
class SumsOf16 final {
 public:
  SumsOf16(const SumsBlock& block, int64_t key)
      : args_(*block.args),
        key_(key),
        prefix_(args_.first_position()),
        panel_(reinterpret_cast<const float*>(block.key_panels) + key * args_.head_dim),
        queries_(row_of<float>(args_.queries, block.head, 0)),
        logsumexp_(args_.logsumexp + block.head * args_.q_len),
        out_(args_.sums + block.head * args_.sums_head_stride + key) {}

  void run() {
    const int64_t last_key = std::min(key_ + 16, args_.kv_len) - 1;
    const int64_t begin = std::max<int64_t>(0, key_ - prefix_);  // the first row that sees a key
    const int64_t end = args_.sliding_window > 0
                            ? std::min(args_.q_len, last_key + args_.sliding_window - prefix_)
                            : args_.q_len;
    int64_t row = begin;
    for (; row + kVecTileRows <= end; row += kVecTileRows) {
      add_rows<kVecTileRows>(row);
    }
    for (; row < end; ++row) {
      add_rows<1>(row);
    }
    float sums[16];
    for (int v = 0; v < kVecsOf16; ++v) {
      vec_store(sums + v * kVecFloats, sums_[v]);
    }
    for (int64_t i = 0; i <= last_key - key_; ++i) {
      out_[i] += sums[i];
    }
  }

 private:
  template <int kRows>
  void add_rows(int64_t row) {
    Vec scores[kRows][kVecsOf16] = {};
    add_tile_products<kRows>(queries_ + row * args_.queries.row_stride, args_.queries.row_stride,
                             panel_, args_.head_dim, scores);
    const bool masked =
        row + prefix_ < key_ + 15 ||
        (args_.sliding_window > 0 && key_ <= row + kRows - 1 + prefix_ - args_.sliding_window);
    const Vec factor = vec_set(args_.scale * kLog2E);
    for (int r = 0; r < kRows; ++r) {
      const float offset = logsumexp_[row + r] * kLog2E;
      for (int v = 0; v < kVecsOf16; ++v) {
        Vec weights = vec_exp2<6>(vec_fma(scores[r][v], factor, vec_set(-offset)));
        if (masked) {
          weights = keep_seen(weights, row + r, key_ + v * kVecFloats);
        }
        sums_[v] += weights;
      }
    }
  }

  // Of weights with the keys from `key` on, those that the row sees.
  Vec keep_seen(Vec weights, int64_t row, int64_t key) const {
    const int64_t last = prefix_ + row;
    const int64_t first = args_.sliding_window > 0 ? last - args_.sliding_window + 1 : 0;
    return vec_keep(weights, first - key, last + 1 - key);
  }

  const AttentionSumsArgs& args_;
  const int64_t key_;
  const int64_t prefix_;  // position of the first row
  const float* panel_;    // [head_dim, 16]
  const float* queries_;
  const float* logsumexp_;
  float* out_;
  Vec sums_[kVecsOf16] = {};
};

void sums_block(const SumsBlock& block) {
  for (int64_t key = block.key_begin; key < block.key_end; key += 16) {
    SumsOf16(block, key).run();
  }
}

}  // namespace
}  // namespace kvlab
