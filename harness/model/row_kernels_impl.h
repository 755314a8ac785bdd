// The loops of row_kernels.h, compiled once for any CPU, for AVX2 and for AVX-512 from the same
// source. Sixteen partial sums in a fixed order keep them alike and let the compiler vectorise.
// Included by one translation unit per instruction set, each in its own namespace.

namespace {

constexpr int64_t kLanes = 16;

template <typename Element>
inline float sum_of_squares(const Element* x, int64_t size) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float value = to_float(x[i + lane]);
      lanes[lane] += value * value;
    }
  }
  float sum = 0;
  for (; i < size; ++i) {
    const float value = to_float(x[i]);
    sum += value * value;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t lane = 0; lane < half; ++lane) {
      lanes[lane] += lanes[lane + half];
    }
  }
  return sum + lanes[0];
}

inline float inverse_rms(float squares, int64_t size, float eps) {
  return 1.0F / __builtin_sqrtf(squares / static_cast<float>(size) + eps);
}

template <typename Element>
void rms_norm_row(Element* x, const Element* delta, const Element* weight, float eps, int64_t size,
                  Element* out) {
  if (delta != nullptr) {
    for (int64_t i = 0; i < size; ++i) {
      x[i] = from_float<Element>(to_float(x[i]) + to_float(delta[i]));
    }
  }
  const float scale = inverse_rms(sum_of_squares(x, size), size, eps);
  for (int64_t i = 0; i < size; ++i) {
    out[i] = from_float<Element>(to_float(x[i]) * scale * to_float(weight[i]));
  }
}

template <typename Element>
void rotate_head(const Element* x, const Element* norm_weight, float eps, const float* cos,
                 const float* sin, int64_t head_dim, Element* out) {
  constexpr int64_t kMaxHeadDim = 1024;
  float values[kMaxHeadDim];
  const int64_t half = head_dim / 2;
  for (int64_t i = 0; i < head_dim; ++i) {
    values[i] = to_float(x[i]);
  }
  if (norm_weight != nullptr) {
    const float scale = inverse_rms(sum_of_squares(x, head_dim), head_dim, eps);
    for (int64_t i = 0; i < head_dim; ++i) {
      // Rounded, so that norm and rotation give the same bits in one call and in two.
      values[i] = to_float(from_float<Element>(values[i] * (scale * to_float(norm_weight[i]))));
    }
  }
  if (cos == nullptr) {
    for (int64_t i = 0; i < head_dim; ++i) {
      out[i] = from_float<Element>(values[i]);
    }
    return;
  }
  for (int64_t i = 0; i < half; ++i) {
    out[i] = from_float<Element>(values[i] * cos[i] - values[i + half] * sin[i]);
    out[i + half] = from_float<Element>(values[i + half] * cos[i] + values[i] * sin[i]);
  }
}

// exp(x) to about 1e-7 relative: 2^n times a polynomial in the remainder.
inline float exp_approx(float x) {
  x = x < -87.0F ? -87.0F : x;
  x = x > 88.0F ? 88.0F : x;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = (x * 1.44269504F + kRound) - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;  // ln 2 in two parts
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const int32_t exponent = (static_cast<int32_t>(n) + 127) << 23;
  return p * __builtin_bit_cast(float, exponent);
}

template <typename Element>
void silu_mul_row(const Element* gate, const Element* up, int64_t size, Element* out) {
  // Denominators go through memory. In one loop the compiler also divides every lane by the
  // constant that a limited exponent gives, and throws away quotients that are denormal, so slow to
  // make.
  constexpr int64_t kBlock = 256;
  float denominators[kBlock];
  for (int64_t first = 0; first < size; first += kBlock) {
    const int64_t count = size - first < kBlock ? size - first : kBlock;
    for (int64_t i = 0; i < count; ++i) {
      denominators[i] = 1.0F + exp_approx(-to_float(gate[first + i]));
    }
#pragma omp simd  // `out` may be `gate`: no element reads another's
    for (int64_t i = first; i < first + count; ++i) {
      out[i] = from_float<Element>(to_float(gate[i]) / denominators[i - first] * to_float(up[i]));
    }
  }
}

template <typename Element>
void rms_norm_block(const RmsNormArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t offset = row * args.size;
    rms_norm_row(static_cast<Element*>(args.x) + offset,
                 args.delta == nullptr ? nullptr : static_cast<const Element*>(args.delta) + offset,
                 static_cast<const Element*>(args.weight), args.eps, args.size,
                 static_cast<Element*>(args.out) + offset);
  }
}

template <typename Element>
void rotate_block(const RotateArgs& args, int64_t begin, int64_t end) {
  const int64_t half = args.head_dim / 2;
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t head = 0; head < args.num_heads; ++head) {
      rotate_head(row_of<Element>(args.x, head, row), static_cast<const Element*>(args.norm_weight),
                  args.eps, args.cos == nullptr ? nullptr : args.cos + row * half,
                  args.sin == nullptr ? nullptr : args.sin + row * half, args.head_dim,
                  row_of<Element>(args.out, head, row));
    }
  }
}

template <typename Element>
void silu_mul_block(const SiluMulArgs& args, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    silu_mul_row(static_cast<const Element*>(args.gate) + row * args.in_row_stride,
                 static_cast<const Element*>(args.up) + row * args.in_row_stride, args.size,
                 static_cast<Element*>(args.out) + row * args.size);
  }
}

RowKernels row_kernels(ElementType type) {
  if (type == ElementType::kFloat32) {
    return {rms_norm_block<float>, rotate_block<float>, silu_mul_block<float>};
  }
  return {rms_norm_block<BFloat16>, rotate_block<BFloat16>, silu_mul_block<BFloat16>};
}

}  // namespace
