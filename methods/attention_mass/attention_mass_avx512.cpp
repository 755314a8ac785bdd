#include <immintrin.h>

#include <cstring>

#include "harness/kernels/key_panels_avx512.h"
#include "methods/attention_mass/attention_mass_kernels.h"
#include "methods/attention_mass/mass_rows_avx512.h"

namespace kvlab {
namespace {

template <typename Element, int kRows>
void score_keys(const MassBlock& block, const char* panels, const avx512::Range& keys,
                float* scores, int64_t stride) {
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
void run(const MassBlock& block) {
  if constexpr (kRows > 1) {
    if (block.row_count < kRows) {
      run<Element, kRows - 1>(block);
      return;
    }
  }
  avx512::add_mass_of_rows(
      block, [&](const char* panels, const avx512::Range& keys, float* scores, int64_t stride) {
        score_keys<Element, kRows>(block, panels, keys, scores, stride);
      });
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
