// The prompt in chunks: matrix products over the whole chunk, attention over the keys so far.
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <exception>

#include "harness/base/status.h"
#include "harness/model/layer_ops.h"
#include "harness/model/transformer_lm.h"

namespace kvlab {

struct TransformerLm::PrefillProgress {
  std::shared_ptr<PromptState> state;
  PrefillNeeds needs;
  std::vector<QueryMoments> moments;  // one a layer where asked for

  int64_t prompt_len() const { return state->prompt_len(); }
};

namespace {

std::shared_ptr<PromptState> new_prompt_state(const ModelConfig& config,
                                              std::span<const int32_t> token_ids,
                                              const PrefillNeeds& needs,
                                              const at::TensorOptions& options) {
  auto state = std::make_shared<PromptState>();
  state->token_ids.assign(token_ids.begin(), token_ids.end());
  const int64_t prompt_len = state->prompt_len();
  const int64_t tail = std::min(needs.tail_queries, prompt_len);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    LayerState layer;
    layer.keys = at::empty({config.num_kv_heads, prompt_len, config.head_dim}, options);
    layer.values = at::empty_like(layer.keys);
    layer.tail_queries = at::empty({config.num_heads, tail, config.head_dim}, options);
    if (needs.attention_sums) {
      layer.attention_sums = at::zeros({config.num_heads, prompt_len}, options.dtype(at::kFloat));
    }
    state->layers.push_back(std::move(layer));
  }
  return state;
}

// x [rows, heads * head_dim] as [heads, rows, head_dim], a view.
at::Tensor as_heads(const at::Tensor& x, int64_t head_dim) {
  return x.view({x.size(0), x.size(1) / head_dim, head_dim}).transpose(0, 1);
}

}  // namespace

absl::StatusOr<std::shared_ptr<PromptState>> TransformerLm::prefill(
    std::span<const int32_t> token_ids, const PrefillOptions& options) {
  KVLAB_RETURN_IF_ERROR(check_token_ids(token_ids, "the prompt"));
  const auto prompt_len = static_cast<int64_t>(token_ids.size());
  KVLAB_RETURN_IF_ERROR(check_positions(prompt_len, "the prompt"));
  if (options.chunk_size < 1) {
    return invalid_argument("the prefill chunk size is {}, expected 1 or more", options.chunk_size);
  }
  const c10::InferenceMode inference;
  try {
    PrefillProgress progress;
    progress.needs = options.needs;
    progress.state = new_prompt_state(config_, token_ids, options.needs,
                                      at::TensorOptions().dtype(dtype_).device(device_));
    progress.moments.resize(options.needs.query_moments ? weights_.layers.size() : 0);
    for (int64_t first = 0; first < prompt_len; first += options.chunk_size) {
      prefill_chunk(first, std::min(options.chunk_size, prompt_len - first), progress);
    }
    for (size_t i = 0; i < progress.moments.size(); ++i) {
      progress.state->layers[i].query_mean = progress.moments[i].mean();
      progress.state->layers[i].query_covariance = progress.moments[i].covariance();
    }
    return progress.state;
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        to_absl(fmt::format("prefill of {} tokens failed: {}", prompt_len, error.what())));
  }
}

void TransformerLm::prefill_chunk(int64_t first, int64_t count, PrefillProgress& progress) {
  const bool last_chunk = first + count == progress.prompt_len();
  const std::span<const int32_t> ids(progress.state->token_ids);
  at::Tensor hidden = embed(ids.subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  at::Tensor normed =
      rms_norm(hidden, weights_.layers.front().attention_norm, config_.rms_norm_eps);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(i)];
    const bool last_layer = i + 1 == config_.num_layers;
    const at::Tensor attended = prefill_attention_part(i, first, normed, progress);
    if (!attended.defined()) {
      return;  // the last layer of a chunk before the last: its output is nobody's input
    }
    if (attended.size(0) < hidden.size(0)) {
      hidden = hidden.narrow(0, count - attended.size(0), attended.size(0)).contiguous();
    }
    NormedSum after_attention =
        add_rms_norm(hidden, apply_linear(attended, layer.o), layer.mlp_norm, config_.rms_norm_eps);
    const at::Tensor inner = silu_mul(apply_linear(after_attention.normed, layer.gate),
                                      apply_linear(after_attention.normed, layer.up));
    const at::Tensor& next_norm = last_layer
                                      ? weights_.final_norm
                                      : weights_.layers[static_cast<size_t>(i + 1)].attention_norm;
    NormedSum after_mlp = add_rms_norm(after_attention.sum, apply_linear(inner, layer.down),
                                       next_norm, config_.rms_norm_eps);
    hidden = after_mlp.sum;
    normed = after_mlp.normed;
  }
  if (last_chunk) {
    progress.state->last_logits = logits(normed.narrow(0, normed.size(0) - 1, 1)).select(0, 0);
  }
}

// The chunk's keys and values into the state, its queries to whoever wants them, and attention.
// Returns [rows, num_heads * head_dim]: all rows, or in the last layer the prompt's last row, or
// undefined where that is not in this chunk.
at::Tensor TransformerLm::prefill_attention_part(int64_t layer_index, int64_t first,
                                                 const at::Tensor& normed,
                                                 PrefillProgress& progress) {
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(layer_index)];
  LayerState& state = progress.state->layers[static_cast<size_t>(layer_index)];
  const int64_t count = normed.size(0);
  const int64_t end = first + count;
  const int64_t head_dim = config_.head_dim;
  const RotaryEmbedding::Tables angles = rotary_.tables(first, count);

  const at::Tensor keys = as_heads(apply_linear(normed, layer.k, layer.k_bias), head_dim);
  rotate_into(keys, angles.cos, angles.sin, layer.k_norm, config_.rms_norm_eps,
              state.keys.narrow(1, first, count));
  state.values.narrow(1, first, count)
      .copy_(as_heads(apply_linear(normed, layer.v, layer.v_bias), head_dim));

  at::Tensor queries = as_heads(apply_linear(normed, layer.q, layer.q_bias), head_dim);
  if (progress.needs.query_moments) {
    rotate_into(queries, {}, {}, layer.q_norm, config_.rms_norm_eps, queries);
    const int64_t skip = std::clamp<int64_t>(progress.needs.moments_from - first, 0, count);
    progress.moments[static_cast<size_t>(layer_index)].add(queries.narrow(1, skip, count - skip));
    rotate_into(queries, angles.cos, angles.sin, {}, 0, queries);
  } else {
    rotate_into(queries, angles.cos, angles.sin, layer.q_norm, config_.rms_norm_eps, queries);
  }
  const int64_t tail = state.tail_queries.size(1);
  const int64_t tail_begin = std::max(first, progress.prompt_len() - tail);
  if (tail_begin < end) {
    state.tail_queries.narrow(1, tail_begin - (progress.prompt_len() - tail), end - tail_begin)
        .copy_(queries.narrow(1, tail_begin - first, end - tail_begin));
  }

  ChunkAttentionArgs args;
  args.keys = state.keys.narrow(1, 0, end);
  args.values = state.values.narrow(1, 0, end);
  args.scale = attention_scale();
  args.sliding_window = config_.sliding_window;
  args.want_logsumexp = progress.needs.attention_sums;
  args.queries = queries;
  const bool last_layer = layer_index + 1 == config_.num_layers;
  if (last_layer && !args.want_logsumexp) {
    if (end < progress.prompt_len()) {
      return {};
    }
    args.queries = queries.narrow(1, count - 1, 1);
  }
  const ChunkAttention attended = chunk_attention(args);
  if (args.want_logsumexp) {
    add_chunk_attention_sums(args, attended.logsumexp, state.attention_sums);
    if (last_layer && end < progress.prompt_len()) {
      return {};
    }
  }
  const at::Tensor output = attended.output.flatten(1);
  return last_layer ? output.narrow(0, output.size(0) - 1, 1) : output;
}

}  // namespace kvlab
