#include "methods/attention_mass_at.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "harness/base/check.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/kernels/finite.h"
#include "harness/kernels/parallel.h"
#include "harness/model/layer_ops.h"
#include "methods/attention_mass/attention_sums.h"
#include "methods/attention_mass_cuda_at.h"

namespace kvlab {
namespace {

at::Tensor with_unit_stride(const at::Tensor& tensor) {
  return tensor.stride(2) == 1 ? tensor : tensor.contiguous();
}

// Scores [rows, keys], a row's keys side by side; the rows of a part of longer ones may lie apart,
// but one row that stands for several (expanded) becomes several.
at::Tensor with_rows_side_by_side(const at::Tensor& scores) {
  const bool apart = scores.size(0) <= 1 || scores.stride(0) >= scores.size(1);
  return scores.stride(1) == 1 && apart ? scores : scores.contiguous();
}

// The mass of rows whose softmax denominators are known: one pass over the keys.
at::Tensor mass_of_attended_rows(const QueryRows& rows, const at::Tensor& keys,
                                 RowReduction reduction) {
  const at::Tensor queries = with_unit_stride(rows.queries);
  const at::Tensor prompt_keys = with_unit_stride(keys);
  const at::Tensor logsumexp = rows.logsumexp.contiguous();
  for (size_t row = 0; row < rows.visible.size(); ++row) {
    KVLAB_CHECK(rows.visible[row] == keys.size(1) && rows.first_visible[row] == 0);
  }
  at::Tensor mass = at::empty({queries.size(0), keys.size(1)}, at::kFloat);
  // Head by head on the kernels' threads: ATen would wake its own, which then spin on these cores.
  const auto for_heads = [&](const auto& body) {
    parallel_for(mass.size(0), [&](int64_t head, int) {
      body(std::span(mass.mutable_data_ptr<float>() + head * mass.size(1), mass.size(1)));
    });
  };
  for_heads([](std::span<float> of_head) { std::fill(of_head.begin(), of_head.end(), 0.0F); });
  AttentionSumsArgs args;
  args.type = element_type(keys.scalar_type());
  args.num_heads = queries.size(0);
  args.num_kv_heads = keys.size(0);
  args.head_dim = keys.size(2);
  args.q_len = queries.size(1);
  args.kv_len = keys.size(1);
  args.rows_follow_keys = true;
  args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(args.head_dim)));
  args.queries = head_rows(queries);
  args.keys = head_rows(prompt_keys);
  args.logsumexp = logsumexp.const_data_ptr<float>();
  args.sums = mass.mutable_data_ptr<float>();
  args.sums_head_stride = mass.stride(0);
  add_attention_sums(args);
  if (reduction == RowReduction::kMean) {
    for_heads([rows = static_cast<float>(args.q_len)](std::span<float> of_head) {
      for (float& value : of_head) {
        value /= rows;
      }
    });
  }
  return mass;
}

// Additive mask [num_rows, num_keys + num_extra]: 0 where a row sees a key, else -inf.
at::Tensor mask_of(const QueryRows& rows, int64_t num_keys, int64_t num_extra,
                   const at::Tensor& like) {
  at::Tensor mask = at::full({rows.num_rows(), num_keys + num_extra},
                             -std::numeric_limits<float>::infinity(), at::kFloat);
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    const int64_t begin = rows.first_visible.empty() ? 0 : rows.first_visible[row];
    const int64_t end = rows.visible.empty() ? num_keys : rows.visible[row];
    if (end > begin) {
      mask[row].slice(0, begin, end).zero_();
    }
    const int64_t extra = rows.extra_visible.empty() ? num_extra : rows.extra_visible[row];
    mask[row].slice(0, num_keys, num_keys + extra).zero_();
  }
  return mask.to(like.device());
}

}  // namespace

at::Tensor attention_mass(const QueryRows& rows, const at::Tensor& keys, RowReduction reduction) {
  const bool mixed =
      rows.queries.scalar_type() != keys.scalar_type() ||
      (rows.extra_keys.defined() && rows.extra_keys.scalar_type() != keys.scalar_type());
  const bool known = keys.scalar_type() == at::kFloat || keys.scalar_type() == at::kBFloat16;
  if (mixed || !known) {
    QueryRows converted = rows;
    converted.queries = rows.queries.to(at::kFloat);
    if (rows.extra_keys.defined()) {
      converted.extra_keys = rows.extra_keys.to(at::kFloat);
    }
    return attention_mass(converted, keys.to(at::kFloat), reduction);
  }
  if constexpr (kCudaKernels) {
    if (use_cuda_kernels(keys)) {
      return attention_mass_cuda_at(rows, keys, reduction);
    }
  }
  if (!keys.device().is_cpu()) {
    return attention_mass_by_operators(rows, keys, reduction);
  }
  if (rows.logsumexp.defined() && reduction != RowReduction::kMax) {
    return mass_of_attended_rows(rows, keys, reduction);
  }
  const at::Tensor queries = with_unit_stride(rows.queries);
  const at::Tensor prompt_keys = with_unit_stride(keys);
  const at::Tensor extra =
      rows.extra_keys.defined() ? with_unit_stride(rows.extra_keys) : at::Tensor();
  at::Tensor mass = at::empty({queries.size(0), keys.size(1)}, at::kFloat);
  AttentionMassArgs args;
  args.type = element_type(keys.scalar_type());
  args.num_heads = queries.size(0);
  args.num_kv_heads = keys.size(0);
  args.head_dim = keys.size(2);
  args.num_rows = queries.size(1);
  args.num_keys = keys.size(1);
  args.num_extra_keys = extra.defined() ? extra.size(1) : 0;
  args.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(args.head_dim)));
  args.queries = head_rows(queries);
  args.keys = head_rows(prompt_keys);
  if (args.num_extra_keys > 0) {
    args.extra_keys = head_rows(extra);
  }
  args.first_visible = rows.first_visible.empty() ? nullptr : rows.first_visible.data();
  args.visible = rows.visible.empty() ? nullptr : rows.visible.data();
  args.extra_visible = rows.extra_visible.empty() ? nullptr : rows.extra_visible.data();
  args.reduction = reduction;
  args.mass = mass.mutable_data_ptr<float>();
  attention_mass(args);
  return mass;
}

at::Tensor attention_mass_by_operators(const QueryRows& rows, const at::Tensor& keys,
                                       RowReduction reduction) {
  const int64_t num_keys = keys.size(1);
  const int64_t group = rows.queries.size(0) / keys.size(0);
  const int64_t num_extra = rows.extra_keys.defined() ? rows.extra_keys.size(1) : 0;
  const double scale = 1.0 / std::sqrt(static_cast<double>(keys.size(2)));
  const at::Tensor mask = mask_of(rows, num_keys, num_extra, keys);
  std::vector<at::Tensor> mass;
  for (int64_t kv_head = 0; kv_head < keys.size(0); ++kv_head) {
    at::Tensor seen = keys[kv_head].to(at::kFloat);
    if (num_extra > 0) {
      seen = at::cat({seen, rows.extra_keys[kv_head].to(at::kFloat)}, 0);
    }
    const at::Tensor queries =
        rows.queries.narrow(0, kv_head * group, group).to(at::kFloat) * scale;
    const at::Tensor logits = at::matmul(queries, seen.t()) + mask;  // [group, rows, keys + extra]
    // A row that sees nothing has no finite logit; its weights count as 0.
    const at::Tensor weights = at::softmax(logits, -1).nan_to_num(0.0).narrow(2, 0, num_keys);
    mass.push_back(reduction == RowReduction::kSum    ? weights.sum(1)
                   : reduction == RowReduction::kMean ? weights.mean(1)
                                                      : weights.amax(1));
  }
  return at::cat(mass, 0);
}

bool attention_mass_is_sound(const QueryRows& rows, const at::Tensor& mass) {
  const at::Tensor& queries = rows.queries;
  if (!use_cpu_kernels(queries) || queries.stride(2) != 1 || !mass.is_contiguous()) {
    return queries.isfinite().all().item<bool>() && (mass.sum(1) > 0).all().item<bool>();
  }
  const ElementType type = element_type(queries.scalar_type());
  const HeadRows query_rows = head_rows(queries);
  for (int64_t head = 0; head < queries.size(0); ++head) {
    for (int64_t row = 0; row < queries.size(1); ++row) {
      const int64_t place = head * query_rows.head_stride + row * query_rows.row_stride;
      if (!all_finite(type, static_cast<const char*>(query_rows.data) + place * element_size(type),
                      queries.size(2))) {
        return false;
      }
    }
    const float* of_head = mass.const_data_ptr<float>() + head * mass.size(1);
    const bool positive =
        std::any_of(of_head, of_head + mass.size(1), [](float m) { return m > 0; });
    if (!positive || !all_finite(ElementType::kFloat32, of_head, mass.size(1))) {
      return false;
    }
  }
  return true;
}

at::Tensor reduce_group_at(const at::Tensor& scores, int64_t num_kv_heads,
                           GroupReduction reduction) {
  const at::Tensor in = with_rows_side_by_side(scores);
  at::Tensor out = at::empty({num_kv_heads, in.size(1)}, at::kFloat);
  reduce_group(reduction, in.const_data_ptr<float>(), in.size(0), num_kv_heads, in.size(1),
               out.mutable_data_ptr<float>(), in.stride(0));
  return out;
}

at::Tensor pool_scores_at(const at::Tensor& scores, PoolKind kind, int64_t kernel) {
  if (kind == PoolKind::kNone || kernel == 1) {
    return scores;
  }
  const at::Tensor in = with_rows_side_by_side(scores);
  at::Tensor out = at::empty(in.sizes(), in.options());
  pool_scores(kind, kernel, in.const_data_ptr<float>(), in.size(0), in.size(1),
              out.mutable_data_ptr<float>(), in.stride(0));
  return out;
}

}  // namespace kvlab
