// What the AVX-512 and AMX versions of attention sums have in common; include nowhere else.
#pragma once

#include <immintrin.h>

#include "harness/kernels/avx512_math.h"
#include "methods/attention_mass/attention_mass_kernels.h"

namespace kvlab::avx512 {

// The keys of a task, 32 at a time, and the weights that query rows give them. Derived has the
// scores:
//   void add_rows(int64_t row, int64_t end, int64_t key, __m512 (&sums)[2])
// calls add_weights for each of the rows.
template <typename Derived>
class SumsOfKeys {
 public:
  explicit SumsOfKeys(const SumsBlock& block)
      : block_(block),
        args_(*block.args),
        logsumexp_(args_.logsumexp + block.head * args_.q_len),
        prefix_(args_.first_position()) {}

  void run() {
    for (int64_t key = block_.key_begin; key < block_.key_end; key += 32) {
      run_keys(key);
    }
  }

 protected:
  // Whether some of rows [row, row + count) do not see some of the 32 keys.
  bool is_masked(int64_t row, int64_t count, int64_t key) const {
    return row + prefix_ < key + 31 ||
           (args_.sliding_window > 0 && key <= row + count - 1 + prefix_ - args_.sliding_window);
  }

  // scores: of one row with 32 keys from `key` on.
  void add_weights(int64_t row, int64_t key, bool masked, __m512 first, __m512 second,
                   __m512 (&sums)[2]) const {
    const __m512 factor = _mm512_set1_ps(args_.scale * kLog2E);
    const __m512 offset = _mm512_set1_ps(logsumexp_[row] * kLog2E);
    const __m512 scores[2] = {first, second};
#pragma GCC unroll 2
    for (int p = 0; p < 2; ++p) {
      __m512 weight = exp2_ps<6>(_mm512_fmsub_ps(scores[p], factor, offset));
      if (masked) {
        weight = _mm512_maskz_mov_ps(seen(row, key + 16 * p), weight);
      }
      sums[p] = _mm512_add_ps(sums[p], weight);
    }
  }

  const SumsBlock& block_;
  const AttentionSumsArgs& args_;

 private:
  void run_keys(int64_t key) {
    const int64_t last_key = (key + 32 < args_.kv_len ? key + 32 : args_.kv_len) - 1;
    const int64_t row = key > prefix_ ? key - prefix_ : 0;  // the first row that sees `key`
    int64_t end = args_.q_len;
    if (args_.sliding_window > 0) {
      const int64_t after = last_key + args_.sliding_window - prefix_;
      end = after < end ? after : end;
    }
    __m512 sums[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    static_cast<Derived*>(this)->add_rows(row, end, key, sums);
    float* out = args_.sums + block_.head * args_.sums_head_stride + key;
    for (int p = 0; p < 2; ++p) {
      const __mmask16 mask = first_lanes_16(args_.kv_len - key - 16 * p);
      _mm512_mask_storeu_ps(out + 16 * p, mask,
                            _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out + 16 * p), sums[p]));
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

  const float* logsumexp_;
  const int64_t prefix_;
};

}  // namespace kvlab::avx512
