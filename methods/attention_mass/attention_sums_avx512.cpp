#include <immintrin.h>

#include "harness/kernels/key_panels_avx512.h"
#include "methods/attention_mass/attention_mass_kernels.h"
#include "methods/attention_mass/sums_of_keys_avx512.h"

namespace kvlab {
namespace {

template <typename Element>
class Block final : public avx512::SumsOfKeys<Block<Element>> {
  using Base = avx512::SumsOfKeys<Block>;
  friend Base;
  using Base::args_;
  using Base::block_;

 public:
  explicit Block(const SumsBlock& block)
      : Base(block),
        words_(args_.head_dim * kSize / 4),
        queries_(static_cast<const char*>(args_.queries.data) +
                 block.head * args_.queries.head_stride * kSize) {}

 private:
  static constexpr int64_t kSize = sizeof(Element);
  static constexpr int kRows = kMassRows;

  void add_rows(int64_t row, int64_t end, int64_t key, __m512 (&sums)[2]) const {
    for (; row + kRows <= end; row += kRows) {
      add_tile<kRows>(row, key, sums);
    }
    for (; row < end; ++row) {
      add_tile<1>(row, key, sums);
    }
  }

  template <int kCount>
  void add_tile(int64_t row, int64_t key, __m512 (&sums)[2]) const {
    __m512 scores[kCount][2];
    avx512::score_tile<Element, kCount, 2>(
        queries_ + row * args_.queries.row_stride * kSize, args_.queries.row_stride * kSize,
        block_.key_panels + key / 16 * words_ * 64, words_, scores);
    const bool masked = this->is_masked(row, kCount, key);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      this->add_weights(row + r, key, masked, scores[r][0], scores[r][1], sums);
    }
  }

  const int64_t words_;
  const char* queries_;
};

}  // namespace

void sums_block_avx512(const SumsBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    Block<float>(block).run();
  } else {
    Block<BFloat16>(block).run();
  }
}

}  // namespace kvlab
