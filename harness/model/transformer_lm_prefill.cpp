// The prompt in chunks: matrix products over the whole chunk, attention over the keys so far.
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <exception>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/model/compute_failure.h"
#include "harness/model/layer_ops.h"
#include "harness/model/prefill_rows.h"
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
    return compute_failure(fmt::format("prefill of {} tokens", prompt_len), error);
  }
}

void TransformerLm::prefill_chunk(int64_t first, int64_t count, PrefillProgress& progress) {
  const bool last_chunk = first + count == progress.prompt_len();
  const std::span<const int32_t> ids(progress.state->token_ids);
  PrefillChunk chunk;
  chunk.first = first;
  chunk.hidden = embed(ids.subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  prefill_rows_between(-1, {}, chunk, progress);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const at::Tensor attended = prefill_attention_part(i, chunk, progress);
    if (!attended.defined()) {
      return;  // the last layer of a chunk before the last: its output is nobody's input
    }
    if (attended.size(0) < count) {
      chunk.hidden =
          chunk.hidden.narrow(0, count - attended.size(0), attended.size(0)).contiguous();
    }
    prefill_rows_between(i, attended, chunk, progress);
  }
  if (last_chunk) {
    const int64_t rows = chunk.normed.size(0);
    progress.state->last_logits = logits(chunk.normed.narrow(0, rows - 1, 1)).select(0, 0);
  }
}

// What happens to every row by itself between the attention of layer `after` (-1: the embedding)
// and the next: chunk.hidden goes on; then the next layer's queries, and its keys and values into
// the state, or after the last layer chunk.normed. `attended` [rows, num_heads * head_dim].
void TransformerLm::prefill_rows_between(int64_t after, const at::Tensor& attended,
                                         PrefillChunk& chunk, PrefillProgress& progress) {
  if (use_cpu_kernels(chunk.hidden)) {
    prefill_rows_cpu(after, attended, chunk, progress);
    return;
  }
  const double eps = config_.rms_norm_eps;
  const int64_t next = after + 1;
  const at::Tensor& next_norm = next == config_.num_layers
                                    ? weights_.final_norm
                                    : weights_.layers[static_cast<size_t>(next)].attention_norm;
  if (after < 0) {
    chunk.normed = rms_norm(chunk.hidden, next_norm, eps);
  } else {
    const LayerWeights& layer = weights_.layers[static_cast<size_t>(after)];
    const NormedSum after_attention =
        add_rms_norm(chunk.hidden, apply_linear(attended, layer.o), layer.mlp_norm, eps);
    const at::Tensor inner = silu_mul(apply_linear(after_attention.normed, layer.gate),
                                      apply_linear(after_attention.normed, layer.up));
    const NormedSum after_mlp =
        add_rms_norm(after_attention.sum, apply_linear(inner, layer.down), next_norm, eps);
    chunk.hidden = after_mlp.sum;
    chunk.normed = after_mlp.normed;
  }
  if (next == config_.num_layers) {
    return;
  }
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(next)];
  LayerState& state = progress.state->layers[static_cast<size_t>(next)];
  const int64_t count = chunk.normed.size(0);
  const int64_t head_dim = config_.head_dim;
  const RotaryEmbedding::Tables angles = rotary_.tables(chunk.first, count);
  const at::Tensor keys = as_heads(apply_linear(chunk.normed, layer.k, layer.k_bias), head_dim);
  rotate_into(keys, angles.cos, angles.sin, layer.k_norm, eps,
              state.keys.narrow(1, chunk.first, count));
  state.values.narrow(1, chunk.first, count)
      .copy_(as_heads(apply_linear(chunk.normed, layer.v, layer.v_bias), head_dim));
  chunk.queries = as_heads(apply_linear(chunk.normed, layer.q, layer.q_bias), head_dim);
  if (progress.needs.query_moments) {
    rotate_into(chunk.queries, {}, {}, layer.q_norm, eps, chunk.queries);
  } else {
    rotate_into(chunk.queries, angles.cos, angles.sin, layer.q_norm, eps, chunk.queries);
  }
}

// The arguments of prefill_rows for these rows but for where its results go. `angles`: of the rows'
// positions.
PrefillRowsArgs TransformerLm::rows_between(int64_t after, const at::Tensor& attended,
                                            const at::Tensor& hidden,
                                            const RotaryEmbedding::Tables& angles) const {
  const int64_t next = after + 1;
  if (next == config_.num_layers) {
    return rows_after(after, attended, hidden);
  }
  PrefillRowsArgs args = rows_before(next, hidden, angles);
  if (after >= 0) {
    add_half_after(after, attended, args);
  }
  return args;
}

// The half before the layer's attention alone.
PrefillRowsArgs TransformerLm::rows_before(int64_t layer, const at::Tensor& hidden,
                                           const RotaryEmbedding::Tables& angles) const {
  const LayerWeights& weights = weights_.layers[static_cast<size_t>(layer)];
  PrefillRowsArgs args = rows_alone(hidden, weights.attention_norm);
  args.qkv = row_layers_[static_cast<size_t>(layer)].qkv.packed();
  args.num_heads = config_.num_heads;
  args.num_kv_heads = config_.num_kv_heads;
  args.head_dim = config_.head_dim;
  args.q_norm = weights.q_norm.defined() ? weights.q_norm.const_data_ptr() : nullptr;
  args.k_norm = weights.k_norm.defined() ? weights.k_norm.const_data_ptr() : nullptr;
  args.cos = angles.cos.const_data_ptr<float>();
  args.sin = angles.sin.const_data_ptr<float>();
  return args;
}

// The half behind the layer's attention and the model's last norm.
PrefillRowsArgs TransformerLm::rows_after(int64_t layer, const at::Tensor& attended,
                                          const at::Tensor& hidden) const {
  PrefillRowsArgs args = rows_alone(hidden, weights_.final_norm);
  add_half_after(layer, attended, args);
  return args;
}

PrefillRowsArgs TransformerLm::rows_alone(const at::Tensor& hidden, const at::Tensor& norm) const {
  PrefillRowsArgs args;
  args.type = element_type(dtype_);
  args.rows = hidden.size(0);
  args.eps = static_cast<float>(config_.rms_norm_eps);
  args.hidden = hidden.data_ptr();
  args.norm = norm.const_data_ptr();
  return args;
}

void TransformerLm::add_half_after(int64_t layer, const at::Tensor& attended,
                                   PrefillRowsArgs& args) const {
  const RowLayer& linears = row_layers_[static_cast<size_t>(layer)];
  KVLAB_CHECK(attended.is_contiguous());
  args.attended = attended.const_data_ptr();
  args.o = linears.o.packed();
  args.gate_up = linears.gate_up.packed();
  args.down = linears.down.packed();
  args.mlp_norm = weights_.layers[static_cast<size_t>(layer)].mlp_norm.const_data_ptr();
}

// The same in one pass over blocks of rows, with the packed weights.
void TransformerLm::prefill_rows_cpu(int64_t after, const at::Tensor& attended, PrefillChunk& chunk,
                                     PrefillProgress& progress) {
  const int64_t count = chunk.hidden.size(0);
  PrefillRowsArgs args =
      rows_between(after, attended, chunk.hidden, rotary_.tables(chunk.first, count));
  if (args.qkv == nullptr) {
    chunk.normed = at::empty_like(chunk.hidden);
    args.normed = chunk.normed.data_ptr();
    prefill_rows(args);
    return;
  }
  if (!chunk.queries.defined()) {
    chunk.queries = at::empty({count, config_.num_heads, config_.head_dim}, chunk.hidden.options())
                        .transpose(0, 1);
  }
  LayerState& state = progress.state->layers[static_cast<size_t>(after + 1)];
  args.rotate_queries = !progress.needs.query_moments;
  args.queries = mutable_head_rows(chunk.queries);
  args.keys = mutable_head_rows(state.keys.narrow(1, chunk.first, count));
  args.values = mutable_head_rows(state.values.narrow(1, chunk.first, count));
  prefill_rows(args);
}

// The chunk's queries to whoever wants them, and attention. Returns [rows, num_heads * head_dim]:
// all rows, or in the last layer the prompt's last row, or undefined where that is not in this
// chunk.
at::Tensor TransformerLm::prefill_attention_part(int64_t layer_index, const PrefillChunk& chunk,
                                                 PrefillProgress& progress) {
  LayerState& state = progress.state->layers[static_cast<size_t>(layer_index)];
  const at::Tensor& queries = chunk.queries;
  const int64_t first = chunk.first;
  const int64_t count = queries.size(1);
  const int64_t end = first + count;
  if (progress.needs.query_moments) {  // of the queries before rotation
    const RotaryEmbedding::Tables angles = rotary_.tables(first, count);
    const int64_t skip = std::clamp<int64_t>(progress.needs.moments_from - first, 0, count);
    progress.moments[static_cast<size_t>(layer_index)].add(queries.narrow(1, skip, count - skip));
    rotate_into(queries, angles.cos, angles.sin, {}, 0, queries);
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
