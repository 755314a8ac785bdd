// What the AVX-512 and AMX versions of prefill attention have in common; include nowhere else.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/prefill_attention_kernels.h"

namespace kvlab::avx512 {

constexpr float kLowest = -1e30F;

// 2 to the (score - largest) * factor, where offset = largest * factor; as exact as the elements.
template <typename Element>
static inline __m512 weight_of(__m512 score, __m512 largest, __m512 factor, __m512 offset) {
  if constexpr (sizeof(Element) == 4) {
    return exp2_ps<6>(_mm512_mul_ps(_mm512_sub_ps(score, largest), factor));
  } else {
    return exp2_ps<4>(_mm512_fmsub_ps(score, factor, offset));
  }
}

// kPanels registers of queries in the lanes: their scores become weights and their outputs grow,
// block by block of keys. Rows are multiplied as Factors; bfloat16 Elements may be widened. Derived
// multiplies:
//   Lanes score_keys(int64_t key, int64_t count)
//     Fills scores_[i, lane] of keys [key, key + count); returns the largest so far as if all were
//     seen.
//   void weigh_values(int64_t key, int64_t count)
//     Adds these keys' values, by weights_, to output_.
template <typename Derived, typename Element, typename Factor, int kPanels>
class QueryLanes {
 public:
  explicit QueryLanes(const PrefillBlock& block)
      : block_(block),
        args_(*block.args),
        head_dim_(args_.head_dim),
        steps_((head_dim_ + kPerStep - 1) / kPerStep),
        queries_(block.scratch),
        output_(queries_ + kQueryBlock * head_dim_),
        scores_(output_ + kQueryBlock * head_dim_),
        weights_(kPerStep == 1 ? scores_ : scores_ + kQueryBlock * kKeyBlock),
        factor_(args_.scale * kLog2E) {}

  void run() {
    pack_queries();
    const int64_t first_position = args_.kv_len - args_.q_len + block_.q_begin;
    const int64_t last_position = first_position + block_.q_count - 1;
    int64_t first_key = 0;
    if (args_.sliding_window > 0 && first_position >= args_.sliding_window) {
      first_key = (first_position - args_.sliding_window + 1) / kKeyBlock * kKeyBlock;
    }
    for (int64_t key = first_key; key <= last_position; key += kKeyBlock) {
      const int64_t count =
          last_position + 1 - key < kKeyBlock ? last_position + 1 - key : kKeyBlock;
      const Lanes unmasked = derived().score_keys(key, count);
      const bool masked = count < kKeyBlock || key + count - 1 > first_position ||
                          (args_.sliding_window > 0 && key <= last_position - args_.sliding_window);
      soften(masked ? mask_scores(key, count, first_position) : unmasked, count,
             masked ? key - first_position : kUnmasked);
      derived().weigh_values(key, count);
    }
    store();
  }

 protected:
  static constexpr int64_t kPerStep = 4 / sizeof(Factor);
  static constexpr bool kWidened = sizeof(Factor) > sizeof(Element);
  static constexpr int64_t kLanes = 16 * kPanels;

  struct Lanes {
    __m512 panel[kPanels];
  };

  const PrefillBlock& block_;
  const PrefillAttentionArgs& args_;
  const int64_t head_dim_;
  const int64_t steps_;
  float* queries_;
  float* output_;   // [head_dim, kLanes], not yet divided
  float* scores_;   // [kKeyBlock, kLanes]
  float* weights_;  // [kKeyBlock / kPerStep, kLanes] of steps; floats lie where the scores did
  const float factor_;
  Lanes largest_;  // of the scores before scaling
  Lanes sum_;

 private:
  static constexpr int64_t kUnmasked = INT64_MIN;

  Derived& derived() { return static_cast<Derived&>(*this); }

  // Turns scores into weights below the new maximum, rescales what there is, and leaves the weights
  // as the second product takes them. `place`: of the block's first key from the first query, or
  // kUnmasked.
  void soften(const Lanes& largest, int64_t count, int64_t place) {
    const __m512 factor = _mm512_set1_ps(factor_);
    __m512 offset[kPanels];
    bool grown = false;
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      grown |= _mm512_cmp_ps_mask(largest.panel[p], largest_.panel[p], _CMP_GT_OQ) != 0;
      offset[p] = _mm512_mul_ps(largest.panel[p], factor);
    }
    if (grown) {
      rescale(largest);
    }
    Lanes sum = sum_;
    for (int64_t i = 0; i < count; i += kPerStep) {
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        __m512 weights[kPerStep];
#pragma GCC unroll 2
        for (int64_t j = 0; j < kPerStep; ++j) {
          weights[j] = weight_of<Element>(_mm512_load_ps(scores_ + (i + j) * kLanes + 16 * p),
                                          largest.panel[p], factor, offset[p]);
          if (place != kUnmasked) {
            const __mmask16 mask =
                i + j < count ? seen_by(place + i + j, args_.sliding_window, p) : __mmask16{0};
            weights[j] = _mm512_maskz_mov_ps(mask, weights[j]);
          }
          sum.panel[p] = _mm512_add_ps(sum.panel[p], weights[j]);
        }
        store_weights(weights, weights_ + i / kPerStep * kLanes + 16 * p);
      }
    }
    sum_ = sum;
  }

  void store() {
    float* sums = scores_;
    float* largest = scores_ + kLanes;
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      const __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1.0F), sum_.panel[p]);
      _mm512_store_ps(sums + 16 * p, sum_.panel[p]);
      _mm512_store_ps(largest + 16 * p, largest_.panel[p]);
      for (int64_t d = 0; d < head_dim_; ++d) {
        float* place = output_ + d * kLanes + 16 * p;
        _mm512_store_ps(place, _mm512_mul_ps(_mm512_load_ps(place), inverse));
      }
    }
    const __m512i lane_stride =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(kLanes));
    for (int64_t lane = 0; lane < block_.q_count; ++lane) {
      auto* out = static_cast<Element*>(args_.output.data) +
                  block_.head * args_.output.head_stride +
                  (block_.q_begin + lane) * args_.output.row_stride;
      for (int64_t d = 0; d < head_dim_; d += 16) {
        const __mmask16 mask = first_lanes_16(head_dim_ - d);
        store_floats(out + d, mask,
                     _mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, lane_stride,
                                              output_ + d * kLanes + lane, 4));
      }
      if (args_.logsumexp != nullptr) {
        args_.logsumexp[block_.head * args_.q_len + block_.q_begin + lane] =
            largest[lane] * args_.scale + __builtin_logf(sums[lane]);
      }
    }
  }

  // [steps, kLanes] of steps; lanes beyond the queries are zero.
  void pack_queries() {
    std::memset(queries_, 0, steps_ * kLanes * 4);
    std::memset(output_, 0, head_dim_ * kLanes * sizeof(float));
    for (int64_t lane = 0; lane < block_.q_count; ++lane) {
      const auto* query = static_cast<const Element*>(args_.queries.data) +
                          block_.head * args_.queries.head_stride +
                          (block_.q_begin + lane) * args_.queries.row_stride;
      for (int64_t d = 0; d < head_dim_; ++d) {
        auto* place =
            reinterpret_cast<Factor*>(queries_ + d / kPerStep * kLanes + lane) + d % kPerStep;
        if constexpr (kWidened) {
          *place = to_float(query[d]);
        } else {
          std::memcpy(place, query + d, sizeof(Element));
        }
      }
    }
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      largest_.panel[p] = _mm512_set1_ps(kLowest);
      sum_.panel[p] = _mm512_setzero_ps();
    }
  }

  // Which lanes see the key whose position, counted from the first query's, is `place`.
  static __mmask16 seen_by(int64_t place, int64_t window, int panel) {
    const int64_t first = place - 16 * panel;  // lane >= first
    __mmask16 mask = static_cast<__mmask16>(~first_lanes_16(first));
    if (window > 0) {
      mask &= first_lanes_16(first + window);  // lane < first + window
    }
    return mask;
  }

  Lanes mask_scores(int64_t key, int64_t count, int64_t first_position) const {
    Lanes result = largest_;
    for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        result.panel[p] = _mm512_mask_max_ps(
            result.panel[p], seen_by(key + i - first_position, args_.sliding_window, p),
            result.panel[p], _mm512_load_ps(scores_ + i * kLanes + 16 * p));
      }
    }
    return result;
  }

  static void store_weights(const __m512 (&weights)[1], float* place) {
    _mm512_store_ps(place, weights[0]);
  }
  // Pairs of keys: the even key's bfloat16 in the lower half of each lane.
  static void store_weights(const __m512 (&weights)[2], float* place) {
    const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(weights[1], weights[0]));
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    _mm512_store_si512(place, _mm512_permutexvar_epi16(order, both));
  }

  void rescale(const Lanes& largest) {
    Lanes shrink;
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      shrink.panel[p] = exp2_ps<6>(_mm512_mul_ps(_mm512_sub_ps(largest_.panel[p], largest.panel[p]),
                                                 _mm512_set1_ps(factor_)));
      sum_.panel[p] = _mm512_mul_ps(sum_.panel[p], shrink.panel[p]);
      largest_.panel[p] = largest.panel[p];
    }
    for (int64_t d = 0; d < head_dim_; ++d) {
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        float* place = output_ + d * kLanes + 16 * p;
        _mm512_store_ps(place, _mm512_mul_ps(_mm512_load_ps(place), shrink.panel[p]));
      }
    }
  }
};

}  // namespace kvlab::avx512
