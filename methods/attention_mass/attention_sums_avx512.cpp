#include <immintrin.h>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/key_panels_avx512.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab {
namespace {

using avx512::first_lanes_16;

constexpr float kLog2E = 1.44269504088896341F;

template <typename Element>
class Block final {
 public:
  explicit Block(const SumsBlock& block)
      : block_(block),
        args_(*block.args),
        words_(args_.head_dim * kSize / 4),
        queries_(static_cast<const char*>(args_.queries.data) +
                 block.head * args_.queries.head_stride * kSize),
        logsumexp_(args_.logsumexp + block.head * args_.q_len),
        prefix_(args_.kv_len - args_.q_len) {}

  void run() {
    for (int64_t key = block_.key_begin; key < block_.key_end; key += 32) {
      run_keys(key);
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(Element);
  static constexpr int kRows = kMassRows;

  void run_keys(int64_t key) {
    const int64_t last_key = (key + 32 < args_.kv_len ? key + 32 : args_.kv_len) - 1;
    int64_t row = key > prefix_ ? key - prefix_ : 0;  // the first row that sees `key`
    int64_t end = args_.q_len;
    if (args_.sliding_window > 0) {
      const int64_t after = last_key + args_.sliding_window - prefix_;
      end = after < end ? after : end;
    }
    __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (; row + kRows <= end; row += kRows) {
      add_rows<kRows>(row, key, sums);
    }
    for (; row < end; ++row) {
      add_rows<1>(row, key, sums);
    }
    float* out = args_.sums + block_.head * args_.sums_head_stride + key;
    for (int p = 0; p < 2; ++p) {
      const __mmask16 mask = first_lanes_16(args_.kv_len - key - 16 * p);
      _mm512_mask_storeu_ps(out + 16 * p, mask,
                            _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out + 16 * p), sums[p]));
    }
  }

  template <int kCount>
  void add_rows(int64_t row, int64_t key, __m512 (&sums)[2]) {
    __m512 scores[kCount][2];
    avx512::score_tile<Element, kCount, 2>(
        queries_ + row * args_.queries.row_stride * kSize, args_.queries.row_stride * kSize,
        block_.key_panels + key / 16 * words_ * 64, words_, scores);
    const bool masked =
        row + prefix_ < key + 31 ||
        (args_.sliding_window > 0 && key <= row + kCount - 1 + prefix_ - args_.sliding_window);
    const __m512 factor = _mm512_set1_ps(args_.scale * kLog2E);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const __m512 offset = _mm512_set1_ps(logsumexp_[row + r] * kLog2E);
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) {
        __m512 weight = avx512::exp2_ps<6>(_mm512_fmsub_ps(scores[r][p], factor, offset));
        if (masked) {
          weight = _mm512_maskz_mov_ps(seen(row + r, key + 16 * p), weight);
        }
        sums[p] = _mm512_add_ps(sums[p], weight);
      }
    }
  }

  // Which of 16 keys from `key` a row sees.
  __mmask16 seen(int64_t row, int64_t key) const {
    const int64_t last = prefix_ + row;
    __mmask16 mask = first_lanes_16(last + 1 - key);
    if (args_.sliding_window > 0) {
      mask &= static_cast<__mmask16>(~first_lanes_16(last - args_.sliding_window + 1 - key));
    }
    return mask;
  }

  const SumsBlock& block_;
  const AttentionSumsArgs& args_;
  const int64_t words_;
  const char* queries_;
  const float* logsumexp_;
  const int64_t prefix_;
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
