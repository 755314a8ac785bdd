// The small functions a decoder layer is made of, on tensors. Reduced precision is computed in
// float32 with one rounding at the end. On the CPU without autograd the fused kernels of
// row_kernels.h run; elsewhere (CUDA, double, gradients) plain ATen operations do the same.
#pragma once

#include <ATen/ATen.h>

#include "harness/kernels/element.h"

namespace kvlab {

// True where the CPU's raw-pointer kernels may run on `tensor`: float32 or bfloat16, no gradient.
bool use_cpu_kernels(const at::Tensor& tensor);
ElementType element_type(at::ScalarType type);  // kFloat or kBFloat16

// x [heads, rows, head_dim] with the last dimension contiguous.
HeadRows head_rows(const at::Tensor& x);
MutableHeadRows mutable_head_rows(const at::Tensor& x);

// float32 for reduced precision; float32 and double stay.
at::Tensor widen(const at::Tensor& x);

// x [rows, heads * head_dim] as [heads, rows, head_dim], a view.
at::Tensor as_heads(const at::Tensor& x, int64_t head_dim);

// x / sqrt(mean(x^2) + eps) * weight over the last dimension.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

// sum = x + delta and its norm. Without autograd x's storage becomes the sum.
struct NormedSum {
  at::Tensor sum;
  at::Tensor normed;
};
NormedSum add_rms_norm(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight,
                       double eps);

// x [..., in_features] -> [..., out_features]; `bias` may be undefined.
at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up);

// Rotates x [heads, rows, head_dim] by cos, sin [rows, head_dim / 2] float32 (undefined: none),
// after an RMS norm with `norm_weight` [head_dim] where that is defined, whose result is rounded to
// x's type: two calls, norm and rotation, give the bits of one.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                  const at::Tensor& norm_weight = {}, double eps = 0);

// The same into `out`, which may be x. Not for autograd.
void rotate_into(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                 const at::Tensor& norm_weight, double eps, const at::Tensor& out);

}  // namespace kvlab
