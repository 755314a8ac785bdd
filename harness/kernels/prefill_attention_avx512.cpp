#include <immintrin.h>

#include <cstring>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/prefill_attention_kernels.h"
#include "harness/kernels/prefill_lanes_avx512.h"

namespace kvlab {
namespace {

constexpr int kTile = 8;  // keys or dimensions of a register tile: 8 x 3 accumulators

// How two rows are multiplied. A step is what one fused operation takes of a row: one float, or two
// bfloat16. Memory of a step: 4 bytes.
template <typename Factor>
struct Ops;

template <>
struct Ops<float> {
  static __m512 fused(__m512 sum, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
};

template <>
struct Ops<BFloat16> {
  static __m512 fused(__m512 sum, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
};

inline __m512i broadcast(const void* step) {
  int32_t bits = 0;
  std::memcpy(&bits, step, sizeof(bits));
  return _mm512_set1_epi32(bits);
}

template <typename Element, typename Factor, int kPanels>
class Block final
    : public avx512::QueryLanes<Block<Element, Factor, kPanels>, Element, Factor, kPanels> {
  using Base = avx512::QueryLanes<Block, Element, Factor, kPanels>;
  friend Base;
  using Base::args_;
  using Base::block_;
  using Base::head_dim_;
  using Base::kLanes;
  using Base::kPerStep;
  using Base::kWidened;
  using Base::largest_;
  using Base::output_;
  using Base::queries_;
  using Base::scores_;
  using Base::steps_;
  using Base::weights_;
  using typename Base::Lanes;

 public:
  using Base::Base;

 private:
  Lanes score_keys(int64_t key, int64_t count) {
    const Factor* keys = nullptr;
    int64_t row_stride = 0;
    if constexpr (kWidened) {
      keys = block_.wide_keys + key * head_dim_;
      row_stride = head_dim_;
    } else {
      keys = row_of<Factor>(args_.keys, block_.kv_head, key);
      row_stride = args_.keys.row_stride;
    }
    const char* rows = reinterpret_cast<const char*>(keys);
    const int64_t row_bytes = row_stride * static_cast<int64_t>(sizeof(Factor));
    Lanes largest = largest_;
    int64_t i = 0;
    for (; i + kTile <= count; i += kTile) {
      score_tile<kTile>(rows + i * row_bytes, row_bytes, scores_ + i * kLanes, largest);
    }
    for (; i < count; ++i) {
      score_tile<1>(rows + i * row_bytes, row_bytes, scores_ + i * kLanes, largest);
    }
    return largest;
  }

  template <int kKeys>
  void score_tile(const char* rows, int64_t row_bytes, float* scores, Lanes& largest) const {
    // Rows in fours: one pointer and the stride reach them all without further registers.
    const char* fours[2] = {rows, rows + 4 * row_bytes};
    const int64_t steps = steps_;
    const float* queries = queries_;
    __m512 sums[kKeys][kPanels];
#pragma GCC unroll 8
    for (int i = 0; i < kKeys; ++i) {
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        sums[i][p] = _mm512_setzero_ps();
      }
    }
    for (int64_t step = 0; step < steps; ++step) {
      __m512i q[kPanels];
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        q[p] = _mm512_load_si512(queries + step * kLanes + 16 * p);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kKeys; ++i) {
        const __m512i k = broadcast(fours[i / 4] + i % 4 * row_bytes + 4 * step);
#pragma GCC unroll 3
        for (int p = 0; p < kPanels; ++p) {
          sums[i][p] = Ops<Factor>::fused(sums[i][p], k, q[p]);
        }
      }
    }
#pragma GCC unroll 3
    for (int p = 0; p < kPanels; ++p) {
      __m512 most = largest.panel[p];
#pragma GCC unroll 8
      for (int i = 0; i < kKeys; ++i) {
        _mm512_store_ps(scores + i * kLanes + 16 * p, sums[i][p]);
        most = _mm512_max_ps(most, sums[i][p]);
      }
      largest.panel[p] = most;
    }
  }

  // The values of step `step` of the block that starts at `key`, dimension 0; dimensions are 4
  // bytes apart.
  const char* value_row(int64_t key, int64_t step) const {
    if constexpr (kPerStep == 2) {
      return reinterpret_cast<const char*>(block_.value_pairs + (key + 2 * step) * head_dim_);
    } else if constexpr (kWidened) {
      return reinterpret_cast<const char*>(block_.wide_values + (key + step) * head_dim_);
    } else {
      return reinterpret_cast<const char*>(static_cast<const float*>(args_.values.data) +
                                           block_.kv_head * args_.values.head_stride +
                                           (key + step) * args_.values.row_stride);
    }
  }

  template <int kDims>
  void weigh_tile(int64_t key, int64_t count, int64_t d) {
    const int64_t steps = (count + kPerStep - 1) / kPerStep;
    const char* values = value_row(key, 0) + 4 * d;
    const int64_t step_bytes = value_row(key, 1) - value_row(key, 0);
    const float* weights = weights_;
    __m512 sums[kDims][kPanels];
#pragma GCC unroll 8
    for (int i = 0; i < kDims; ++i) {
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        sums[i][p] = _mm512_load_ps(output_ + (d + i) * kLanes + 16 * p);
      }
    }
    for (int64_t step = 0; step < steps; ++step) {
      __m512i w[kPanels];
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        w[p] = _mm512_load_si512(weights + step * kLanes + 16 * p);
      }
#pragma GCC unroll 8
      for (int i = 0; i < kDims; ++i) {
        const __m512i v = broadcast(values + step * step_bytes + 4 * i);
#pragma GCC unroll 3
        for (int p = 0; p < kPanels; ++p) {
          sums[i][p] = Ops<Factor>::fused(sums[i][p], v, w[p]);
        }
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kDims; ++i) {
#pragma GCC unroll 3
      for (int p = 0; p < kPanels; ++p) {
        _mm512_store_ps(output_ + (d + i) * kLanes + 16 * p, sums[i][p]);
      }
    }
  }

  void weigh_values(int64_t key, int64_t count) {
    int64_t d = 0;
    for (; d + kTile <= head_dim_; d += kTile) {
      weigh_tile<kTile>(key, count, d);
    }
    for (; d < head_dim_; ++d) {
      weigh_tile<1>(key, count, d);
    }
  }
};

template <typename Element, typename Factor>
void run(const PrefillBlock& block) {
  if (block.q_count > 32) {
    Block<Element, Factor, 3>(block).run();
  } else if (block.q_count > 16) {
    Block<Element, Factor, 2>(block).run();
  } else {
    Block<Element, Factor, 1>(block).run();
  }
}

}  // namespace

void prefill_block_avx512(const PrefillBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    run<float, float>(block);
  } else {
    run<BFloat16, BFloat16>(block);
  }
}

void prefill_block_avx512_widen(const PrefillBlock& block) {
  if (block.args->type == ElementType::kFloat32) {
    run<float, float>(block);
  } else {
    run<BFloat16, float>(block);
  }
}

}  // namespace kvlab
