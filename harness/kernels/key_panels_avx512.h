// Keys packed for products with query rows, for the AVX-512 translation units.
//
// A panel holds 16 keys: for every step along head_dim 64 bytes, one float or two bfloat16 of each
// key. Lanes are keys, so that what is summed over query rows needs no exchange between lanes.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/element.h"

namespace kvlab::avx512 {

// Transposes 16 rows of 16 four-byte words.
static inline void transpose_16x16(__m512i (&rows)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    rows[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    rows[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    rows[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  // Now 128-bit lane j of rows[4 * i + c] holds word 4 * j + c of source rows 4 * i .. 4 * i + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i a = _mm512_shuffle_i32x4(rows[c], rows[4 + c], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(rows[c], rows[4 + c], 0xdd);
    const __m512i d = _mm512_shuffle_i32x4(rows[8 + c], rows[12 + c], 0x88);
    const __m512i e = _mm512_shuffle_i32x4(rows[8 + c], rows[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(a, d, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(a, d, 0xdd);
    t[4 + c] = _mm512_shuffle_i32x4(b, e, 0x88);
    t[12 + c] = _mm512_shuffle_i32x4(b, e, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    rows[i] = t[i];
  }
}

// Sixteen words of a row, from `word` on: as they stand, or bfloat16 numbers as floats.
template <bool kWiden>
static inline __m512i load_words(const char* row, int64_t word, __mmask16 mask) {
  if constexpr (kWiden) {
    return _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row + word * 2)),
                             16);
  } else {
    return _mm512_maskz_loadu_epi32(mask, row + word * 4);
  }
}

// Packs `len` rows of `row_words` four-byte words each (kWiden: as many bfloat16), `row_bytes`
// apart, into whole panels; keys beyond `len` are zero.
template <bool kWiden>
static inline void pack_key_panels(const char* keys, int64_t row_bytes, int64_t row_words,
                                   int64_t len, char* panels) {
  for (int64_t key = 0; key < len; key += 16) {
    char* panel = panels + key / 16 * row_words * 64;
    for (int64_t word = 0; word < row_words; word += 16) {
      const __mmask16 mask = first_lanes_16(row_words - word);
      __m512i rows[16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        rows[i] = key + i < len ? load_words<kWiden>(keys + (key + i) * row_bytes, word, mask)
                                : _mm512_setzero_si512();
      }
      transpose_16x16(rows);
      for (int64_t i = 0; i < 16 && word + i < row_words; ++i) {
        _mm512_store_si512(panel + (word + i) * 64, rows[i]);
      }
    }
  }
}

static inline __m512i broadcast_word(const void* word) {
  int32_t bits = 0;
  std::memcpy(&bits, word, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

template <typename Element>
static inline __m512 fused_step(__m512 sum, __m512i a, __m512i b) {
  if constexpr (sizeof(Element) == 2) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  } else {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
}

// sums[r][p]: query row r, `query_bytes` apart, against panel p; `words` steps.
template <typename Element, int kRows, int kPanels>
static inline void score_tile(const char* queries, int64_t query_bytes, const char* panels,
                              int64_t words, __m512 (&sums)[kRows][kPanels]) {
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      sums[r][p] = _mm512_setzero_ps();
    }
  }
  for (int64_t word = 0; word < words; ++word) {
    __m512i k[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      k[p] = _mm512_load_si512(panels + (p * words + word) * 64);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const __m512i q = broadcast_word(queries + r * query_bytes + word * 4);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = fused_step<Element>(sums[r][p], q, k[p]);
      }
    }
  }
}

}  // namespace kvlab::avx512
