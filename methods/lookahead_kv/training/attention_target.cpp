#include "methods/lookahead_kv/training/attention_target.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvlab {
namespace {
// Keeps the logarithm finite where a long prompt's weights underflow.
constexpr double kTiny = 1e-20;
}  // namespace

at::Tensor attention_target(const at::Tensor& reply_queries, const at::Tensor& prompt_keys,
                            const at::Tensor& reply_keys, at::ScalarType dtype,
                            int64_t block_rows) {
  const c10::NoGradGuard no_grad;
  const int64_t num_heads = reply_queries.size(0);
  const int64_t reply_len = reply_queries.size(1);
  const int64_t d = reply_queries.size(2);
  const int64_t kv_heads = prompt_keys.size(0);
  const int64_t group = num_heads / kv_heads;
  const int64_t prompt_len = prompt_keys.size(1);
  const at::Tensor keys = at::cat({prompt_keys.to(dtype), reply_keys.to(dtype)}, 1).transpose(1, 2);
  at::Tensor sums = at::zeros({num_heads, prompt_len}, keys.options());
  const at::Tensor positions = at::arange(prompt_len + reply_len, keys.options().dtype(at::kLong));
  for (int64_t begin = 0; begin < reply_len; begin += block_rows) {
    const int64_t rows = std::min(block_rows, reply_len - begin);
    const at::Tensor queries =
        (reply_queries.narrow(1, begin, rows).to(dtype) / std::sqrt(static_cast<double>(d)))
            .reshape({kv_heads, group * rows, d});
    const at::Tensor row_positions =
        at::arange(prompt_len + begin, prompt_len + begin + rows, positions.options());
    const at::Tensor hidden = positions.unsqueeze(0) > row_positions.unsqueeze(1);
    const at::Tensor weights =
        at::softmax(at::matmul(queries, keys)
                        .view({num_heads, rows, prompt_len + reply_len})
                        .masked_fill(hidden, -std::numeric_limits<double>::infinity()),
                    -1);
    sums += weights.narrow(-1, 0, prompt_len).sum(1);
  }
  return sums / sums.sum(-1, /*keepdim=*/true);
}

at::Tensor attention_divergence(const at::Tensor& target, const at::Tensor& scores) {
  const at::Tensor predicted = scores / scores.sum(-1, /*keepdim=*/true);
  // xlogy(0, 0) is 0, as KL wants it.
  return (at::xlogy(target, target) - target * at::log(predicted.clamp_min(kTiny))).sum();
}

double attention_recall(const at::Tensor& target, const at::Tensor& scores, int64_t num_kv_heads,
                        int64_t budget) {
  const c10::NoGradGuard no_grad;
  const auto per_kv_head = [&](const at::Tensor& x) {
    return x.reshape({num_kv_heads, -1, x.size(1)}).mean(1);
  };
  const at::Tensor truth = per_kv_head(target);
  const int64_t kept = std::min<int64_t>(budget, truth.size(1));
  const at::Tensor chosen = std::get<1>(per_kv_head(scores).topk(kept, -1));
  const at::Tensor best = std::get<0>(truth.topk(kept, -1)).sum(-1);
  return (truth.gather(-1, chosen).sum(-1) / best).mean().item<double>();
}

}  // namespace kvlab
