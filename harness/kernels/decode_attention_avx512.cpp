#include <immintrin.h>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/bring_near.h"
#include "harness/kernels/decode_attention_kernels.h"

namespace kvlab {
namespace {

using avx512::first_lanes_16;
using avx512::first_lanes_32;

// A register's worth of a row: 32 bfloat16 or 16 floats.
template <typename Element>
constexpr int64_t kPart = 64 / sizeof(Element);

inline __m512i load_part(const BFloat16* row, int64_t count) {
  return _mm512_maskz_loadu_epi16(first_lanes_32(count), row);
}
inline __m512i load_part(const float* row, int64_t count) {
  return _mm512_maskz_loadu_epi32(first_lanes_16(count), row);
}

template <typename Element>
inline __m512 fused(__m512 sum, __m512i a, __m512i b) {
  if constexpr (sizeof(Element) == 2) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  } else {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
}

// A query in kParts registers, for rows of exactly so many.
template <typename Element, int kParts>
class Query final {
 public:
  Query(const Element* query, int64_t /*head_dim*/) {
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      parts_[part] = _mm512_loadu_si512(query + part * kPart<Element>);
    }
  }
  // Lane-wise products with a key, summed over the registers in order.
  __m512 multiply(const Element* key) const {
    __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 8
    for (int part = 0; part < kParts; ++part) {
      sum = fused<Element>(sum, parts_[part], _mm512_loadu_si512(key + part * kPart<Element>));
    }
    return sum;
  }

 private:
  __m512i parts_[kParts];
};

// The same for rows of any length.
template <typename Element>
class Query<Element, 0> final {
 public:
  Query(const Element* query, int64_t head_dim) : query_(query), head_dim_(head_dim) {}
  __m512 multiply(const Element* key) const {
    __m512 sum = _mm512_setzero_ps();
    for (int64_t d = 0; d < head_dim_; d += kPart<Element>) {
      sum = fused<Element>(sum, load_part(query_ + d, head_dim_ - d),
                           load_part(key + d, head_dim_ - d));
    }
    return sum;
  }

 private:
  const Element* query_;
  const int64_t head_dim_;
};

// Scaled scores of all queries against a run, into scores[row * score_stride + ...]. Sixteen keys
// at a time meet every query while they are near.
template <typename Element, int kParts>
void score_run(const DecodeChunk& chunk, const DecodeRun& run, float* scores) {
  const int64_t head_dim = kParts > 0 ? kParts * kPart<Element> : chunk.head_dim;
  const __m512 scale = _mm512_set1_ps(chunk.scale);
  for (int64_t i = 0; i < run.len; i += 16) {
    const Element* keys = static_cast<const Element*>(run.keys) + i * head_dim;
    const int64_t count = run.len - i < 16 ? run.len - i : 16;
    const int64_t entry_bytes = head_dim * static_cast<int64_t>(sizeof(Element));
    bring_near(static_cast<const char*>(run.values) + i * entry_bytes, count * entry_bytes);
    for (int64_t row = 0; row < chunk.group_size; ++row) {
      const Query<Element, kParts> query(
          static_cast<const Element*>(chunk.queries) + row * head_dim, head_dim);
      __m512 partial[16];
      if (count == 16) {
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j) {
          partial[j] = query.multiply(keys + j * head_dim);
        }
      } else {
#pragma GCC unroll 16
        for (int64_t j = 0; j < 16; ++j) {
          partial[j] = j < count ? query.multiply(keys + j * head_dim) : _mm512_setzero_ps();
        }
      }
      _mm512_mask_storeu_ps(scores + row * chunk.score_stride + i, first_lanes_16(count),
                            _mm512_mul_ps(avx512::sum_lanes_of_16(partial), scale));
    }
  }
}

template <typename Element>
void score_run_any(const DecodeChunk& chunk, const DecodeRun& run, float* scores) {
  switch (chunk.head_dim % kPart<Element> == 0 ? chunk.head_dim / kPart<Element> : 0) {
    case 2:
      score_run<Element, 2>(chunk, run, scores);
      break;
    case 3:
      score_run<Element, 3>(chunk, run, scores);
      break;
    case 4:
      score_run<Element, 4>(chunk, run, scores);
      break;
    case 8:
      score_run<Element, 8>(chunk, run, scores);
      break;
    default:
      score_run<Element, 0>(chunk, run, scores);
      break;
  }
}

// Turns scores into weights; returns through the chunk's largest and sum.
void soften(float* scores, int64_t len, float* largest_out, float* sum_out) {
  __m512 largest = _mm512_set1_ps(-__builtin_inff());
  for (int64_t i = 0; i < len; i += 16) {
    const __mmask16 mask = first_lanes_16(len - i);
    largest = _mm512_mask_max_ps(largest, mask, largest, _mm512_maskz_loadu_ps(mask, scores + i));
  }
  *largest_out = _mm512_reduce_max_ps(largest);
  largest = _mm512_set1_ps(*largest_out);
  __m512 sum = _mm512_setzero_ps();
  for (int64_t i = 0; i < len; i += 16) {
    const __mmask16 mask = first_lanes_16(len - i);
    const __m512 weight =
        avx512::exp_ps(_mm512_sub_ps(_mm512_mask_loadu_ps(largest, mask, scores + i), largest));
    _mm512_mask_storeu_ps(scores + i, mask, weight);
    sum = _mm512_mask_add_ps(sum, mask, sum, weight);
  }
  *sum_out = _mm512_reduce_add_ps(sum);
}

// Adds the weighted values of both runs to kRows query rows, dimensions [d, d + 16 * kBlocks).
template <typename Element, int kRows, int kBlocks>
void weigh_values(const DecodeChunk& chunk, int64_t first_row, int64_t d) {
  __mmask16 masks[kBlocks];
#pragma GCC unroll 4
  for (int b = 0; b < kBlocks; ++b) {
    masks[b] = first_lanes_16(chunk.head_dim - d - 16 * b);
  }
  __m512 sums[kRows][kBlocks];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      sums[r][b] = _mm512_setzero_ps();
    }
  }
  const float* weights = chunk.weights + first_row * chunk.score_stride;
  for (const DecodeRun& run : chunk.runs) {
    const Element* value = static_cast<const Element*>(run.values) + d;
    for (int64_t i = 0; i < run.len; ++i, value += chunk.head_dim) {
      __m512 v[kBlocks];
#pragma GCC unroll 4
      for (int b = 0; b < kBlocks; ++b) {
        v[b] = avx512::load_floats(value + 16 * b, masks[b]);
      }
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const __m512 weight = _mm512_set1_ps(weights[r * chunk.score_stride + i]);
#pragma GCC unroll 4
        for (int b = 0; b < kBlocks; ++b) {
          sums[r][b] = _mm512_fmadd_ps(weight, v[b], sums[r][b]);
        }
      }
    }
    weights += run.len;
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int b = 0; b < kBlocks; ++b) {
      _mm512_mask_storeu_ps(chunk.output + (first_row + r) * chunk.head_dim + d + 16 * b, masks[b],
                            sums[r][b]);
    }
  }
}

template <typename Element, int kRows>
void weigh_rows(const DecodeChunk& chunk, int64_t first_row) {
  int64_t d = 0;
  for (; d + 64 <= chunk.head_dim; d += 64) {
    weigh_values<Element, kRows, 4>(chunk, first_row, d);
  }
  for (; d < chunk.head_dim; d += 16) {
    weigh_values<Element, kRows, 1>(chunk, first_row, d);
  }
}

template <typename Element>
void attend(const DecodeChunk& chunk) {
  const int64_t len = chunk.runs[0].len + chunk.runs[1].len;
  float* place = chunk.weights;
  for (const DecodeRun& run : chunk.runs) {
    score_run_any<Element>(chunk, run, place);
    place += run.len;
  }
  // Caches of many arms lie apart: without this each of them starts with the memory's delay.
  bring_near(chunk.next_keys,
             chunk.next_len * chunk.head_dim * static_cast<int64_t>(sizeof(Element)));
  for (int64_t row = 0; row < chunk.group_size; ++row) {
    soften(chunk.weights + row * chunk.score_stride, len, chunk.largest + row, chunk.sum + row);
  }
  int64_t row = 0;
  for (; row + 4 <= chunk.group_size; row += 4) {
    weigh_rows<Element, 4>(chunk, row);
  }
  switch (chunk.group_size - row) {
    case 3:
      weigh_rows<Element, 3>(chunk, row);
      break;
    case 2:
      weigh_rows<Element, 2>(chunk, row);
      break;
    case 1:
      weigh_rows<Element, 1>(chunk, row);
      break;
    default:
      break;
  }
}

}  // namespace

void decode_chunk_avx512(const DecodeChunk& chunk) {
  if (chunk.type == ElementType::kFloat32) {
    attend<float>(chunk);
  } else {
    attend<BFloat16>(chunk);
  }
}

}  // namespace kvlab
