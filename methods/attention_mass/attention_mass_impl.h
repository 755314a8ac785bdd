// The inner loops of attention_mass on float32 products, compiled once for any CPU and once for
// AVX2. Lanes are keys, packed by pack_keys_of_heads.
#pragma once

#include <algorithm>
#include <limits>

#include "harness/kernels/vec.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

// Keys [begin, end) of a row of scores.
struct KeyRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin >= end; }
  void widen_to(const KeyRange& other) {
    if (!other.empty()) {
      *this = empty() ? other : KeyRange{std::min(begin, other.begin), std::max(end, other.end)};
    }
  }
  // The first register that holds some of it.
  int64_t first_vec() const { return begin / kVecFloats * kVecFloats; }
  Vec keep(Vec v, int64_t key) const { return vec_keep(v, begin - key, end - key); }
};

// Scores of the block's rows with the keys of the range, and with those that share its 16s, into
// scores[r * stride + key]; not scaled.
inline void score_keys(const MassBlock& block, const char* panels, const KeyRange& keys,
                       float* scores, int64_t stride) {
  const AttentionMassArgs& args = *block.args;
  const float* queries = row_of<float>(args.queries, block.head, block.row_begin);
  for (int64_t key = keys.begin / 16 * 16; key < keys.end; key += 16) {
    const float* panel = reinterpret_cast<const float*>(panels) + key * args.head_dim;
    for_each_vec_tile(block.row_count, [&]<int kRows>(int64_t first) {
      Vec sums[kRows][kVecsOf16] = {};
      add_tile_products<kRows>(queries + first * args.queries.row_stride, args.queries.row_stride,
                               panel, args.head_dim, sums);
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVecsOf16; ++v) {
          vec_store(scores + (first + r) * stride + key + v * kVecFloats, sums[r][v]);
        }
      }
    });
  }
}

inline float largest_in(const float* scores, const KeyRange& range, float start) {
  float largest = start;
  int64_t key = range.begin;
  if (range.end - range.begin >= kVecFloats) {
    Vec vec = vec_load(scores + key);
    for (; key + kVecFloats <= range.end; key += kVecFloats) {
      vec = vec_max(vec_load(scores + key), vec);
    }
    largest = std::max(largest, vec_largest(vec));
  }
  for (; key < range.end; ++key) {
    largest = std::max(largest, scores[key]);
  }
  return largest;
}

// Replaces scores by exp((score - largest) * scale), zero outside the range but in its registers;
// returns their sum. factor: scale * log2 e.
inline float soften(float* scores, const KeyRange& range, float largest, float factor) {
  Vec sum = {};
  for (int64_t key = range.first_vec(); key < range.end; key += kVecFloats) {
    const Vec weights = range.keep(vec_exp2<6>((vec_load(scores + key) - largest) * factor), key);
    vec_store(scores + key, weights);
    sum += weights;
  }
  return vec_sum(sum);
}

inline void add_row(const MassBlock& block, const float* weights, const KeyRange& range,
                    float inverse) {
  const bool largest = block.args->reduction == RowReduction::kMax;
  float* mass = block.mass;
  int64_t key = range.begin;
  for (; key + kVecFloats <= range.end; key += kVecFloats) {
    const Vec weight = vec_load(weights + key) * inverse;
    const Vec before = vec_load(mass + key);
    // What is no number stays, whichever of the two it is.
    const Vec more = before != before ? before : vec_max(before, weight);
    vec_store(mass + key, largest ? more : before + weight);
  }
  for (; key < range.end; ++key) {
    const float weight = weights[key] * inverse;
    mass[key] = largest ? larger_or_broken(mass[key], weight) : mass[key] + weight;
  }
}

void mass_block(const MassBlock& block) {
  const AttentionMassArgs& args = *block.args;
  const int64_t stride = mass_score_stride(args);
  const int64_t extra_begin = stride - (args.num_extra_keys + 31) / 32 * 32;
  KeyRange seen[kMassRows];
  KeyRange seen_extra[kMassRows];
  KeyRange all;
  KeyRange all_extra;
  for (int64_t r = 0; r < block.row_count; ++r) {
    const int64_t row = block.row_begin + r;
    seen[r] = {args.first_visible != nullptr ? args.first_visible[row] : 0,
               args.visible != nullptr ? args.visible[row] : args.num_keys};
    seen_extra[r] = {0,
                     args.extra_visible != nullptr ? args.extra_visible[row] : args.num_extra_keys};
    all.widen_to(seen[r]);
    all_extra.widen_to(seen_extra[r]);
  }
  if (all.empty()) {
    return;
  }
  score_keys(block, block.key_panels, all, block.scores, stride);
  score_keys(block, block.extra_panels, all_extra, block.scores + extra_begin, stride);
  const float factor = args.scale * kLog2E;
  for (int64_t r = 0; r < block.row_count; ++r) {
    if (seen[r].empty()) {
      continue;
    }
    float* scores = block.scores + r * stride;
    float* extra = scores + extra_begin;
    const float largest = largest_in(
        extra, seen_extra[r], largest_in(scores, seen[r], -std::numeric_limits<float>::infinity()));
    const float sum =
        soften(scores, seen[r], largest, factor) + soften(extra, seen_extra[r], largest, factor);
    add_row(block, scores, seen[r], 1.0F / sum);
  }
}

}  // namespace
}  // namespace kvlab
