// What the AVX-512 and AMX versions of attention mass have in common; include nowhere else.
#pragma once

#include <immintrin.h>

#include "harness/kernels/avx512_math.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab::avx512 {

// Part of a row of scores: keys [begin, end) of those in the buffer.
struct Range {
  int64_t begin;
  int64_t end;
};

static inline __mmask16 lanes_of(const Range& range, int64_t key) {
  return static_cast<__mmask16>(first_lanes_16(range.end - key) &
                                ~first_lanes_16(range.begin - key));
}

static inline float largest_in(const float* scores, const Range& range, float start) {
  __m512 largest = _mm512_set1_ps(start);
  for (int64_t key = range.begin / 16 * 16; key < range.end; key += 16) {
    largest =
        _mm512_mask_max_ps(largest, lanes_of(range, key), largest, _mm512_load_ps(scores + key));
  }
  return _mm512_reduce_max_ps(largest);
}

// Replaces scores by exp((score - largest) * scale), zero outside the range but in its registers.
static inline float soften(float* scores, const Range& range, float largest, float factor) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t key = range.begin / 16 * 16; key < range.end; key += 16) {
    const __m512 shifted =
        _mm512_mul_ps(_mm512_sub_ps(_mm512_load_ps(scores + key), _mm512_set1_ps(largest)),
                      _mm512_set1_ps(factor));
    const __m512 weight = _mm512_maskz_mov_ps(lanes_of(range, key), exp2_ps<6>(shifted));
    _mm512_store_ps(scores + key, weight);
    sum = _mm512_add_ps(sum, weight);
  }
  return _mm512_reduce_add_ps(sum);
}

// A block's rows: scores, weights, and what they add to the mass.
//   score_keys(const char* panels, const Range& keys, float* scores, int64_t stride)
// fills scores[r * stride + key] of every row for the keys of the range, and for those that share
// its 32s.
template <typename ScoreKeys>
void add_mass_of_rows(const MassBlock& block, const ScoreKeys& score_keys) {
  const AttentionMassArgs& args = *block.args;
  const int64_t stride = mass_score_stride(args);
  const int64_t extra_begin = (args.num_keys + 31) / 32 * 32;
  Range seen[kMassRows];
  Range seen_extra[kMassRows];
  Range all{args.num_keys, 0};
  Range all_extra{0, 0};
  for (int r = 0; r < block.row_count; ++r) {
    const int64_t row = block.row_begin + r;
    seen[r].begin = args.first_visible != nullptr ? args.first_visible[row] : 0;
    seen[r].end = args.visible != nullptr ? args.visible[row] : args.num_keys;
    seen_extra[r].begin = 0;
    seen_extra[r].end =
        args.extra_visible != nullptr ? args.extra_visible[row] : args.num_extra_keys;
    if (seen[r].begin < seen[r].end) {
      all.begin = seen[r].begin < all.begin ? seen[r].begin : all.begin;
      all.end = seen[r].end > all.end ? seen[r].end : all.end;
    }
    all_extra.end = seen_extra[r].end > all_extra.end ? seen_extra[r].end : all_extra.end;
  }
  if (all.begin >= all.end) {
    return;
  }
  score_keys(block.key_panels, all, block.scores, stride);
  score_keys(block.extra_panels, all_extra, block.scores + extra_begin, stride);
  const float factor = args.scale * kLog2E;
  for (int r = 0; r < block.row_count; ++r) {
    if (seen[r].begin >= seen[r].end) {
      continue;
    }
    float* scores = block.scores + r * stride;
    float* extra = scores + extra_begin;
    const float largest =
        largest_in(extra, seen_extra[r], largest_in(scores, seen[r], -__builtin_inff()));
    const float sum =
        soften(scores, seen[r], largest, factor) + soften(extra, seen_extra[r], largest, factor);
    const __m512 inverse = _mm512_set1_ps(1.0F / sum);
    for (int64_t key = seen[r].begin / 16 * 16; key < seen[r].end; key += 16) {
      const __mmask16 mask = lanes_of(seen[r], key);
      const __m512 weight = _mm512_mul_ps(_mm512_load_ps(scores + key), inverse);
      const __m512 before = _mm512_maskz_loadu_ps(mask, block.mass + key);
      _mm512_mask_storeu_ps(block.mass + key, mask,
                            args.reduction == RowReduction::kMax ? _mm512_max_ps(before, weight)
                                                                 : _mm512_add_ps(before, weight));
    }
  }
}

}  // namespace kvlab::avx512
