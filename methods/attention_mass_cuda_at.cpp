#include "methods/attention_mass_cuda_at.h"

#include <c10/cuda/CUDAGuard.h>

#include <cmath>

#include "harness/cuda/cuda_tensors.h"
#include "harness/model/layer_ops.h"

namespace kvlab {
namespace {

const int64_t* limits(const std::vector<int64_t>& values, const at::Tensor& like,
                      at::Tensor& keep) {
  if (values.empty()) {
    return nullptr;
  }
  keep = upload<int64_t>(values, like);
  return static_cast<const int64_t*>(keep.const_data_ptr());
}

}  // namespace

at::Tensor attention_mass_cuda_at(const QueryRows& rows, const at::Tensor& keys,
                                  RowReduction reduction) {
  const c10::cuda::CUDAGuard guard(keys.device());
  const at::Tensor queries = aligned_rows(rows.queries);
  const at::Tensor prompt_keys = aligned_rows(keys);
  const at::Tensor extra = rows.extra_keys.defined() && rows.extra_keys.size(1) > 0
                               ? aligned_rows(rows.extra_keys)
                               : at::Tensor();
  const auto floats = keys.options().dtype(at::kFloat);
  at::Tensor mass = at::empty({queries.size(0), keys.size(1)}, floats);
  CudaAttentionMassArgs args;
  args.mass.type = element_type(keys.scalar_type());
  args.mass.num_heads = queries.size(0);
  args.mass.num_kv_heads = keys.size(0);
  args.mass.head_dim = keys.size(2);
  args.mass.num_rows = queries.size(1);
  args.mass.num_keys = keys.size(1);
  args.mass.num_extra_keys = extra.defined() ? extra.size(1) : 0;
  args.mass.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(keys.size(2))));
  args.mass.queries = head_rows(queries);
  args.mass.keys = head_rows(prompt_keys);
  if (extra.defined()) {
    args.mass.extra_keys = head_rows(extra);
  }
  at::Tensor first_visible;
  at::Tensor visible;
  at::Tensor extra_visible;
  args.mass.first_visible = limits(rows.first_visible, keys, first_visible);
  args.mass.visible = limits(rows.visible, keys, visible);
  args.mass.extra_visible = limits(rows.extra_visible, keys, extra_visible);
  args.mass.reduction = reduction;
  args.mass.mass = mass.data_ptr<float>();
  const at::Tensor scratch =
      at::empty({cuda_attention_mass_scratch_bytes(args.mass)}, keys.options().dtype(at::kByte));
  args.scratch = scratch.data_ptr();
  throw_unless_ok(attention_mass_cuda(args, current_stream(keys)));
  return mass;
}

at::Tensor reduce_scores_cuda_at(const at::Tensor& scores, int64_t num_groups,
                                 const ScoreReduction& reduction) {
  const c10::cuda::CUDAGuard guard(scores.device());
  const at::Tensor in = scores.contiguous();
  at::Tensor out = at::empty({num_groups, reduction.num_scored}, in.options());
  throw_unless_ok(reduce_scores_cuda(in.const_data_ptr<float>(), in.size(0), num_groups, in.size(1),
                                     reduction, out.data_ptr<float>(), current_stream(in)));
  return out;
}

}  // namespace kvlab
