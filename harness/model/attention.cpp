#include "harness/model/attention.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <vector>

#include "harness/base/check.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/kernels/prefill_attention.h"
#include "harness/model/attention_cuda_at.h"
#include "harness/model/layer_ops.h"
#include "methods/attention_mass/attention_sums.h"

namespace kvlab {
namespace {

constexpr int64_t kReferenceBlock = 128;  // queries at a time

int64_t group_size(const ChunkAttentionArgs& args) {
  return args.queries.size(0) / args.keys.size(0);
}

bool inference_on_cpu(const ChunkAttentionArgs& args) {
  return use_cpu_kernels(args.queries) && use_cpu_kernels(args.keys) &&
         use_cpu_kernels(args.values);
}

// True where a query may look; [count, kv_end] for queries first .. first + count - 1, by position.
at::Tensor visible_mask(int64_t first_position, int64_t count, int64_t kv_end, int64_t window,
                        at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor positions =
      at::arange(first_position, first_position + count, options).unsqueeze(1);
  const at::Tensor keys = at::arange(kv_end, options).unsqueeze(0);
  at::Tensor visible = keys <= positions;
  if (window > 0) {
    visible = at::logical_and(visible, keys > positions - window);
  }
  return visible;
}

// Scaled scores [num_kv_heads, group * count, kv_end] of queries first .. first + count - 1, -inf
// where not visible. `kv_end` is one past the last query's position.
at::Tensor block_scores(const ChunkAttentionArgs& args, int64_t first, int64_t count,
                        int64_t kv_end) {
  const int64_t num_kv_heads = args.keys.size(0);
  const int64_t group = group_size(args);
  const int64_t head_dim = args.queries.size(2);
  const at::Tensor q =
      widen(args.queries.narrow(1, first, count)).reshape({num_kv_heads, group * count, head_dim});
  const at::Tensor k = widen(args.keys.narrow(1, 0, kv_end));
  const at::Tensor scores = at::matmul(q, k.transpose(1, 2)) * args.scale;
  const at::Tensor visible =
      visible_mask(kv_end - count, count, kv_end, args.sliding_window, scores.device());
  return scores.view({num_kv_heads, group, count, kv_end})
      .masked_fill(at::logical_not(visible), -INFINITY)
      .view({num_kv_heads, group * count, kv_end});
}

struct Partial {
  at::Tensor output;     // [num_heads, q_len, head_dim]
  at::Tensor logsumexp;  // [num_heads, q_len] float32
};

// One fused call, heads already equal in number on CUDA's memory-efficient kernel.
Partial fused_call(const at::Tensor& q, at::Tensor k, at::Tensor v, bool causal, double scale) {
  const at::Tensor q4 = q.unsqueeze(0);
  if (q.is_cpu()) {
    auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        q4, k.unsqueeze(0), v.unsqueeze(0), 0.0, causal, {}, scale);
    return {out.squeeze(0), lse.squeeze(0).to(at::kFloat)};
  }
  if (q.scalar_type() != at::kFloat && q.size(2) <= 256) {
    const auto result = at::_scaled_dot_product_flash_attention(
        q4, k.unsqueeze(0), v.unsqueeze(0), 0.0, causal, /*return_debug_mask=*/false, scale);
    return {std::get<0>(result).squeeze(0), std::get<1>(result).squeeze(0).to(at::kFloat)};
  }
  const int64_t repeat = q.size(0) / k.size(0);
  if (repeat > 1) {
    k = k.repeat_interleave(repeat, 0);
    v = v.repeat_interleave(repeat, 0);
  }
  const auto result = at::_scaled_dot_product_efficient_attention(
      q4, k.unsqueeze(0), v.unsqueeze(0), {}, /*compute_log_sumexp=*/true, 0.0, causal, scale);
  // Its logsumexp is padded to a multiple of 32.
  return {std::get<0>(result).squeeze(0),
          std::get<1>(result).narrow(-1, 0, q.size(1)).squeeze(0).to(at::kFloat)};
}

// Queries over keys that all of them see: the heads of a group become rows of one KV head.
Partial unmasked_call(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale) {
  const int64_t num_heads = q.size(0);
  const int64_t q_len = q.size(1);
  const int64_t head_dim = q.size(2);
  const int64_t rows = num_heads / k.size(0) * q_len;
  const Partial folded =
      fused_call(q.reshape({k.size(0), rows, head_dim}), k, v, /*causal=*/false, scale);
  return {folded.output.reshape({num_heads, q_len, head_dim}),
          folded.logsumexp.reshape({num_heads, q_len})};
}

Partial merge(const Partial& a, const Partial& b, at::ScalarType dtype) {
  const at::Tensor total = at::logaddexp(a.logsumexp, b.logsumexp);
  const at::Tensor weight_a = at::exp(a.logsumexp - total).unsqueeze(-1);
  const at::Tensor weight_b = at::exp(b.logsumexp - total).unsqueeze(-1);
  const at::Tensor output = widen(a.output) * weight_a + widen(b.output) * weight_b;
  return {output.to(dtype), total};
}

ChunkAttention chunk_attention_cpu(const ChunkAttentionArgs& args) {
  const int64_t num_heads = args.queries.size(0);
  const int64_t q_len = args.queries.size(1);
  const int64_t head_dim = args.queries.size(2);
  ChunkAttention result;
  result.output = at::empty({q_len, num_heads, head_dim}, args.queries.options());
  if (args.want_logsumexp) {
    result.logsumexp = at::empty({num_heads, q_len}, args.queries.options().dtype(at::kFloat));
  }
  PrefillAttentionArgs kernel;
  kernel.type = element_type(args.queries.scalar_type());
  kernel.num_heads = num_heads;
  kernel.num_kv_heads = args.keys.size(0);
  kernel.head_dim = head_dim;
  kernel.q_len = q_len;
  kernel.kv_len = args.keys.size(1);
  kernel.scale = static_cast<float>(args.scale);
  kernel.sliding_window = args.sliding_window;
  kernel.queries = head_rows(args.queries);
  kernel.keys = head_rows(args.keys);
  kernel.values = head_rows(args.values);
  kernel.output = mutable_head_rows(result.output.transpose(0, 1));
  kernel.logsumexp = args.want_logsumexp ? result.logsumexp.data_ptr<float>() : nullptr;
  prefill_attention(kernel);
  return result;
}

}  // namespace

ChunkAttention chunk_attention(const ChunkAttentionArgs& args) {
  KVLAB_CHECK(args.queries.size(0) % args.keys.size(0) == 0);
  KVLAB_CHECK(args.keys.size(1) >= args.queries.size(1));
  if (inference_on_cpu(args)) {
    return chunk_attention_cpu(args);
  }
  const bool needs_gradient =
      c10::GradMode::is_enabled() &&
      (args.queries.requires_grad() || args.keys.requires_grad() || args.values.requires_grad());
  if (args.queries.is_cuda() && !needs_gradient && args.sliding_window == 0) {
    return chunk_attention_sdpa(args);
  }
  return chunk_attention_reference(args);
}

ChunkAttention chunk_attention_reference(const ChunkAttentionArgs& args) {
  const int64_t num_heads = args.queries.size(0);
  const int64_t q_len = args.queries.size(1);
  const int64_t head_dim = args.queries.size(2);
  const int64_t kv_len = args.keys.size(1);
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> sums;
  for (int64_t first = 0; first < q_len; first += kReferenceBlock) {
    const int64_t count = std::min(kReferenceBlock, q_len - first);
    const int64_t kv_end = kv_len - q_len + first + count;
    const at::Tensor scores = block_scores(args, first, count, kv_end);
    const at::Tensor lse = at::logsumexp(scores, {-1}, /*keepdim=*/true);
    const at::Tensor weights = at::exp(scores - lse);
    const at::Tensor out = at::matmul(weights, widen(args.values.narrow(1, 0, kv_end)));
    outputs.push_back(out.view({num_heads, count, head_dim}));
    sums.push_back(lse.view({num_heads, count}));
  }
  ChunkAttention result;
  result.output = at::cat(outputs, 1).transpose(0, 1).to(args.queries.scalar_type()).contiguous();
  if (args.want_logsumexp) {
    result.logsumexp = at::cat(sums, 1).to(at::kFloat);
  }
  return result;
}

ChunkAttention chunk_attention_sdpa(const ChunkAttentionArgs& args) {
  KVLAB_CHECK(args.sliding_window == 0);
  const int64_t q_len = args.queries.size(1);
  const int64_t prefix = args.keys.size(1) - q_len;
  const at::Tensor& q = args.queries;
  Partial result;
  if (q_len == 1) {
    result = unmasked_call(q, args.keys, args.values, args.scale);
  } else {
    result = fused_call(q, args.keys.narrow(1, prefix, q_len), args.values.narrow(1, prefix, q_len),
                        /*causal=*/true, args.scale);
    if (prefix > 0) {
      const Partial before = unmasked_call(q, args.keys.narrow(1, 0, prefix),
                                           args.values.narrow(1, 0, prefix), args.scale);
      result = merge(before, result, q.scalar_type());
    }
  }
  return {result.output.transpose(0, 1).contiguous(),
          args.want_logsumexp ? result.logsumexp.contiguous() : at::Tensor()};
}

void add_chunk_attention_sums(const ChunkAttentionArgs& args, const at::Tensor& logsumexp,
                              const at::Tensor& sums) {
  if constexpr (kCudaKernels) {
    if (use_cuda_kernels(args.queries)) {
      add_chunk_attention_sums_cuda(args, logsumexp, sums);
      return;
    }
  }
  if (!inference_on_cpu(args)) {
    add_chunk_attention_sums_reference(args, logsumexp, sums);
    return;
  }
  AttentionSumsArgs kernel;
  kernel.type = element_type(args.queries.scalar_type());
  kernel.num_heads = args.queries.size(0);
  kernel.num_kv_heads = args.keys.size(0);
  kernel.head_dim = args.queries.size(2);
  kernel.q_len = args.queries.size(1);
  kernel.kv_len = args.keys.size(1);
  kernel.scale = static_cast<float>(args.scale);
  kernel.sliding_window = args.sliding_window;
  kernel.queries = head_rows(args.queries);
  kernel.keys = head_rows(args.keys);
  kernel.logsumexp = logsumexp.const_data_ptr<float>();
  kernel.sums = sums.data_ptr<float>();
  kernel.sums_head_stride = sums.stride(0);
  add_attention_sums(kernel);
}

void add_chunk_attention_sums_reference(const ChunkAttentionArgs& args, const at::Tensor& logsumexp,
                                        const at::Tensor& sums) {
  const int64_t num_heads = args.queries.size(0);
  const int64_t q_len = args.queries.size(1);
  const int64_t kv_len = args.keys.size(1);
  for (int64_t first = 0; first < q_len; first += kReferenceBlock) {
    const int64_t count = std::min(kReferenceBlock, q_len - first);
    const int64_t kv_end = kv_len - q_len + first + count;
    const at::Tensor scores =
        block_scores(args, first, count, kv_end).view({num_heads, count, kv_end});
    const at::Tensor weights = at::exp(scores - logsumexp.narrow(1, first, count).unsqueeze(-1));
    sums.narrow(1, 0, kv_end).add_(weights.sum(1));
  }
}

}  // namespace kvlab
