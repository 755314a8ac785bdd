#include <immintrin.h>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/key_panels_avx512.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

using avx512::first_lanes_16;

constexpr float kLog2E = 1.44269504088896341F;

// Part of a row of scores: keys [begin, end) of those in the buffer.
struct Range {
  int64_t begin;
  int64_t end;
};

inline __mmask16 lanes_of(const Range& range, int64_t key) {
  return static_cast<__mmask16>(first_lanes_16(range.end - key) &
                                ~first_lanes_16(range.begin - key));
}

float largest_in(const float* scores, const Range& range, float start) {
  __m512 largest = _mm512_set1_ps(start);
  for (int64_t key = range.begin / 16 * 16; key < range.end; key += 16) {
    largest =
        _mm512_mask_max_ps(largest, lanes_of(range, key), largest, _mm512_load_ps(scores + key));
  }
  return _mm512_reduce_max_ps(largest);
}

// Replaces scores by exp((score - largest) * scale), zero outside the range but in its registers.
float soften(float* scores, const Range& range, float largest, float factor) {
  __m512 sum = _mm512_setzero_ps();
  for (int64_t key = range.begin / 16 * 16; key < range.end; key += 16) {
    const __m512 shifted =
        _mm512_mul_ps(_mm512_sub_ps(_mm512_load_ps(scores + key), _mm512_set1_ps(largest)),
                      _mm512_set1_ps(factor));
    const __m512 weight = _mm512_maskz_mov_ps(lanes_of(range, key), avx512::exp2_ps<6>(shifted));
    _mm512_store_ps(scores + key, weight);
    sum = _mm512_add_ps(sum, weight);
  }
  return _mm512_reduce_add_ps(sum);
}

template <typename Element, int kRows>
void score_keys(const MassBlock& block, const char* panels, const Range& keys, float* scores,
                int64_t stride) {
  const AttentionMassArgs& args = *block.args;
  constexpr int64_t kSize = sizeof(Element);
  const char* queries =
      static_cast<const char*>(args.queries.data) +
      (block.head * args.queries.head_stride + block.row_begin * args.queries.row_stride) * kSize;
  const int64_t words = args.head_dim * kSize / 4;
  for (int64_t key = keys.begin / 32 * 32; key < keys.end; key += 32) {
    __m512 sums[kRows][2];
    avx512::score_tile<Element, kRows, 2>(queries, args.queries.row_stride * kSize,
                                          panels + key / 16 * words * 64, words, sums);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      _mm512_store_ps(scores + r * stride + key, sums[r][0]);
      _mm512_store_ps(scores + r * stride + key + 16, sums[r][1]);
    }
  }
}

template <typename Element, int kRows>
void run_rows(const MassBlock& block) {
  const AttentionMassArgs& args = *block.args;
  const int64_t stride = mass_score_stride(args);
  const int64_t extra_begin = (args.num_keys + 31) / 32 * 32;
  Range seen[kRows];
  Range seen_extra[kRows];
  Range all{args.num_keys, 0};
  Range all_extra{0, 0};
  for (int r = 0; r < kRows; ++r) {
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
  score_keys<Element, kRows>(block, block.key_panels, all, block.scores, stride);
  score_keys<Element, kRows>(block, block.extra_panels, all_extra, block.scores + extra_begin,
                             stride);
  const float factor = args.scale * kLog2E;
  for (int r = 0; r < kRows; ++r) {
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

template <typename Element, int kRows>
void run(const MassBlock& block) {
  if constexpr (kRows > 1) {
    if (block.row_count < kRows) {
      run<Element, kRows - 1>(block);
      return;
    }
  }
  run_rows<Element, kRows>(block);
}

}  // namespace

void pack_key_panels_avx512(ElementType type, ElementType packed_type, const void* keys,
                            int64_t row_stride, int64_t head_dim, int64_t len, char* panels) {
  const auto* rows = static_cast<const char*>(keys);
  const int64_t row_bytes = row_stride * element_size(type);
  const int64_t words = head_dim * element_size(packed_type) / 4;
  if (packed_type == type) {
    avx512::pack_key_panels<false>(rows, row_bytes, words, len, panels);
  } else {
    avx512::pack_key_panels<true>(rows, row_bytes, words, len, panels);
  }
  if (len > 0 && (len + 15) / 16 % 2 == 1) {
    std::memset(panels + (len + 15) / 16 * words * 64, 0, words * 64);
  }
}

void mass_block_avx512(const MassBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    run<float, kMassRows>(block);
  } else {
    run<BFloat16, kMassRows>(block);
  }
}

}  // namespace kvlab
