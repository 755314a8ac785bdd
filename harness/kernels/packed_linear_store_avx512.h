// How the AVX-512 and AMX versions of PackedLinear store sums; include nowhere else.
#pragma once

#include <immintrin.h>

#include "harness/kernels/avx512_math.h"
#include "harness/kernels/packed_linear_kernels.h"

namespace kvlab::avx512 {

// The outputs of one panel: adds its bias and stores rows of sums.
class PanelStore final {
 public:
  [[gnu::always_inline]] PanelStore(const PackedLinearArgs& args, int64_t panel)
      : args_(args),
        column_(panel * kPanelWidth),
        mask_(first_lanes_16(args.out_features - column_)),
        bias_(args.bias != nullptr ? _mm512_loadu_ps(args.bias + column_) : _mm512_setzero_ps()) {}

  [[gnu::always_inline]] void store(int64_t row, __m512 sum) const {
    const __m512 value = args_.bias != nullptr ? _mm512_add_ps(sum, bias_) : sum;
    char* y = args_.y + row * args_.y_row_bytes;
    if (args_.y_type == ElementType::kFloat32) {
      store_floats(reinterpret_cast<float*>(y) + column_, mask_, value);
    } else {
      store_floats(reinterpret_cast<BFloat16*>(y) + column_, mask_, value);
    }
  }

 private:
  const PackedLinearArgs& args_;
  const int64_t column_;
  const __mmask16 mask_;
  const __m512 bias_;
};

}  // namespace kvlab::avx512
