#include "harness/model/layer_ops.h"

#include <c10/core/GradMode.h>

#include "harness/base/check.h"
#include "harness/model/row_kernels.h"

namespace kvlab {
namespace {

bool contiguous_rows(const at::Tensor& x) { return x.is_contiguous(); }

at::Tensor rms_norm_plain(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = widen(x);
  const at::Tensor scale = at::rsqrt(at::mean(wide * wide, {-1}, /*keepdim=*/true) + eps);
  return (wide * scale * widen(weight)).to(x.scalar_type());
}

at::Tensor rms_norm_fused(const at::Tensor& x, const at::Tensor* delta, const at::Tensor& weight,
                          double eps) {
  at::Tensor out = at::empty_like(x);
  RmsNormArgs args;
  args.type = element_type(x.scalar_type());
  args.size = x.size(-1);
  args.rows = args.size == 0 ? 0 : x.numel() / args.size;
  args.eps = static_cast<float>(eps);
  args.x = x.data_ptr();
  args.delta = delta == nullptr ? nullptr : delta->const_data_ptr();
  args.weight = weight.const_data_ptr();
  args.out = out.data_ptr();
  rms_norm_rows(args);
  return out;
}

}  // namespace

at::Tensor widen(const at::Tensor& x) {
  return at::isReducedFloatingType(x.scalar_type()) ? x.to(at::kFloat) : x;
}

at::Tensor as_heads(const at::Tensor& x, int64_t head_dim) {
  return x.view({x.size(0), x.size(1) / head_dim, head_dim}).transpose(0, 1);
}

bool use_cpu_kernels(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.is_cpu() && (type == at::kFloat || type == at::kBFloat16) &&
         !(c10::GradMode::is_enabled() && tensor.requires_grad());
}

ElementType element_type(at::ScalarType type) {
  KVLAB_CHECK(type == at::kFloat || type == at::kBFloat16);
  return type == at::kFloat ? ElementType::kFloat32 : ElementType::kBFloat16;
}

HeadRows head_rows(const at::Tensor& x) {
  KVLAB_CHECK(x.dim() == 3 && (x.size(2) <= 1 || x.stride(2) == 1));
  return {x.const_data_ptr(), x.stride(0), x.stride(1)};
}

MutableHeadRows mutable_head_rows(const at::Tensor& x) {
  KVLAB_CHECK(x.dim() == 3 && (x.size(2) <= 1 || x.stride(2) == 1));
  return {x.data_ptr(), x.stride(0), x.stride(1)};
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (use_cpu_kernels(x) && use_cpu_kernels(weight) && contiguous_rows(x)) {
    return rms_norm_fused(x, nullptr, weight, eps);
  }
  return rms_norm_plain(x, weight, eps);
}

NormedSum add_rms_norm(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& weight,
                       double eps) {
  if (use_cpu_kernels(x) && use_cpu_kernels(delta) && use_cpu_kernels(weight) &&
      contiguous_rows(x) && contiguous_rows(delta)) {
    return {x, rms_norm_fused(x, &delta, weight, eps)};
  }
  const at::Tensor sum = x + delta;
  return {sum, rms_norm_plain(sum, weight, eps)};
}

at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
}

at::Tensor silu_mul(const at::Tensor& gate, const at::Tensor& up) {
  if (use_cpu_kernels(gate) && use_cpu_kernels(up) && gate.dim() == 2 && gate.stride(1) == 1 &&
      gate.strides() == up.strides()) {
    at::Tensor out = at::empty({gate.size(0), gate.size(1)}, gate.options());
    SiluMulArgs args;
    args.type = element_type(gate.scalar_type());
    args.rows = gate.size(0);
    args.size = gate.size(1);
    args.gate = gate.const_data_ptr();
    args.up = up.const_data_ptr();
    args.in_row_stride = gate.stride(0);
    args.out = out.data_ptr();
    silu_mul_rows(args);
    return out;
  }
  return (at::silu(widen(gate)) * widen(up)).to(gate.scalar_type());
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                  const at::Tensor& norm_weight, double eps) {
  at::Tensor wide = widen(x);
  if (norm_weight.defined()) {
    wide = widen(rms_norm_plain(wide, norm_weight, eps).to(x.scalar_type()));
  }
  if (cos.defined()) {
    const int64_t half = x.size(-1) / 2;
    const at::Tensor first = wide.narrow(-1, 0, half);
    const at::Tensor second = wide.narrow(-1, half, half);
    wide = at::cat({first * cos - second * sin, second * cos + first * sin}, -1);
  }
  return wide.to(x.scalar_type());
}

void rotate_into(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                 const at::Tensor& norm_weight, double eps, const at::Tensor& out) {
  if (!use_cpu_kernels(x)) {
    out.copy_(rotate(x, cos, sin, norm_weight, eps));
    return;
  }
  KVLAB_CHECK(!cos.defined() || (cos.is_contiguous() && sin.is_contiguous()));
  RotateArgs args;
  args.type = element_type(x.scalar_type());
  args.num_heads = x.size(0);
  args.rows = x.size(1);
  args.head_dim = x.size(2);
  args.x = head_rows(x);
  args.out = mutable_head_rows(out);
  args.cos = cos.defined() ? cos.const_data_ptr<float>() : nullptr;
  args.sin = sin.defined() ? sin.const_data_ptr<float>() : nullptr;
  args.norm_weight = norm_weight.defined() ? norm_weight.const_data_ptr() : nullptr;
  args.eps = static_cast<float>(eps);
  rotate_rows(args);
}

}  // namespace kvlab
