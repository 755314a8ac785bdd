// Layer by layer: all chunks of a prompt and the rows behind it, or the rows behind a finished
// prompt, go through one layer before the next begins, in storage that every layer uses again.
#include <c10/core/InferenceMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/kernels/parallel.h"
#include "harness/model/compute_failure.h"
#include "harness/model/layer_ops.h"
#include "harness/model/prefill_rows.h"
#include "harness/model/transformer_lm.h"

namespace kvlab {

// The layer that all rows are in.
struct TransformerLm::LayerPass {
  LayerPass(const ModelConfig& config, int64_t prompt_tokens, int64_t num_appended,
            const at::TensorOptions& options)
      : prompt_len(prompt_tokens),
        keys(at::empty({config.num_kv_heads, prompt_tokens + num_appended, config.head_dim},
                       options)),
        values(at::empty_like(keys)) {}

  int64_t layer = 0;
  int64_t prompt_len = 0;
  // [num_kv_heads, prompt_len + appended rows, head_dim]; the prompt's are their first part.
  at::Tensor keys;
  at::Tensor values;
  LayerState* state = nullptr;      // of a prompt on its way; its keys and values alias these
  QueryMoments* moments = nullptr;  // null: not wanted
  int64_t moments_from = 0;
  bool attention_sums = false;
  // The appended rows: their updates as the kernels take them, and what they leave.
  RowUpdates appended_updates;
  at::Tensor appended_queries;    // [num_heads, appended rows, head_dim]
  at::Tensor appended_logsumexp;  // [num_heads, appended rows]; undefined in the last layer
};

// A chunk's rows between two layers.
struct TransformerLm::LayerChunk {
  int64_t first = 0;     // position of the first row
  at::Tensor hidden;     // [rows, hidden_size]; undefined: nobody's input any more
  int64_t appended = 0;  // rows at the end that stand behind the prompt
};

namespace {

// Whether rows with this adapter can be the last rows of a chunk: on the CPU, if the kernels know
// its updates.
bool kernels_know_updates(const at::Tensor& rows, const RowAdapter* adapter) {
  return use_cpu_kernels(rows) && (adapter == nullptr || adapter->kernel_updates(0));
}

absl::Status check_appended(const at::Tensor& rows, const ModelConfig& config) {
  if (rows.dim() != 2 || rows.size(1) != config.hidden_size || rows.size(0) == 0) {
    return invalid_argument("appended rows must be [count, {}], got [{}]", config.hidden_size,
                            fmt::join(rows.sizes().vec(), ", "));
  }
  return absl::OkStatus();
}

// A prompt's keys or values [heads, rows, head_dim] into the first rows of `to`. Not copy_ on the
// CPU: LibTorch's threads get in the way of the kernels' own.
void copy_first_rows(const at::Tensor& from, const at::Tensor& to) {
  if (!use_cpu_kernels(from)) {
    to.narrow(1, 0, from.size(1)).copy_(from);
    return;
  }
  const HeadRows source = head_rows(from);
  const MutableHeadRows target = mutable_head_rows(to);
  const int64_t head_dim = from.size(2);
  KVLAB_CHECK(source.row_stride == head_dim && target.row_stride == head_dim);
  KVLAB_CHECK(from.scalar_type() == to.scalar_type());
  const int64_t element = from.element_size();
  parallel_for(from.size(0), [&](int64_t head, int) {
    std::memcpy(static_cast<char*>(target.data) + head * target.head_stride * element,
                static_cast<const char*>(source.data) + head * source.head_stride * element,
                static_cast<size_t>(from.size(1) * head_dim * element));
  });
}

}  // namespace

absl::StatusOr<at::Tensor> TransformerLm::prefill_by_layers(std::span<const int32_t> token_ids,
                                                            const LayerPrefillOptions& options) {
  const int64_t num_appended = options.appended.count();
  const auto prompt_len = static_cast<int64_t>(token_ids.size());
  KVLAB_RETURN_IF_ERROR(check_token_ids(token_ids, "the prompt"));
  if (options.appended.embeddings.defined()) {
    KVLAB_RETURN_IF_ERROR(check_appended(options.appended.embeddings, config_));
  }
  KVLAB_RETURN_IF_ERROR(check_positions(
      prompt_len + num_appended, num_appended > 0 ? "the prompt with its rows" : "the prompt"));
  if (options.chunk_size < 1) {
    return invalid_argument("the prefill chunk size is {}, expected 1 or more", options.chunk_size);
  }
  const c10::InferenceMode inference;
  try {
    const auto num_layers = static_cast<size_t>(config_.num_layers);
    const auto tensors = at::TensorOptions().dtype(dtype_).device(device_);
    PromptState state;
    state.token_ids.assign(token_ids.begin(), token_ids.end());
    state.layers.resize(num_layers);
    CapturedQueries appended;
    appended.queries.resize(num_layers);
    appended.keys.resize(num_layers);
    appended.logsumexp.resize(num_layers);

    std::vector<LayerChunk> chunks;
    for (int64_t first = 0; first < prompt_len; first += options.chunk_size) {
      const int64_t count = std::min(options.chunk_size, prompt_len - first);
      chunks.push_back({first, embed(token_ids.subspan(static_cast<size_t>(first),
                                                       static_cast<size_t>(count)))});
    }
    at::Tensor rows;  // the appended ones' hidden states
    if (num_appended > 0) {
      rows = options.appended.embeddings.to(device_, dtype_, /*non_blocking=*/false, /*copy=*/true)
                 .contiguous();
    }
    const RowAdapter* const adapter = options.appended.adapter.get();
    const bool one_pass = num_appended > 0 && kernels_know_updates(rows, adapter);
    if (one_pass) {
      LayerChunk& last = chunks.back();
      last.hidden = at::cat({last.hidden, rows}, 0);
      last.appended = num_appended;
    }
    LayerPass pass(config_, prompt_len, num_appended, tensors);
    pass.moments_from = options.needs.moments_from;
    pass.attention_sums = options.needs.attention_sums;
    const at::Tensor tail_queries = at::empty(
        {config_.num_heads, std::min(options.needs.tail_queries, prompt_len), config_.head_dim},
        tensors);
    for (size_t i = 0; i < num_layers; ++i) {
      LayerState& layer = state.layers[i];
      layer.keys = pass.keys.narrow(1, 0, prompt_len);
      layer.values = pass.values.narrow(1, 0, prompt_len);
      layer.tail_queries = tail_queries;
      if (options.needs.attention_sums) {
        layer.attention_sums =
            at::zeros({config_.num_heads, prompt_len}, tensors.dtype(at::kFloat));
      }
      QueryMoments moments;
      pass.layer = static_cast<int64_t>(i);
      pass.state = &layer;
      pass.moments = options.needs.query_moments ? &moments : nullptr;
      if (one_pass && adapter != nullptr) {
        pass.appended_updates = *adapter->kernel_updates(pass.layer);
      }
      for (LayerChunk& chunk : chunks) {
        const at::Tensor attended = attend_chunk(pass, chunk);
        finish_chunk(pass, attended, chunk);
      }
      if (options.needs.query_moments) {
        layer.query_mean = moments.mean();
        layer.query_covariance = moments.covariance();
      }
      if (num_appended > 0) {
        if (!one_pass) {
          run_appended(pass, adapter, rows);
        }
        appended.queries[i] = pass.appended_queries;
        appended.keys[i] = pass.keys.narrow(1, prompt_len, num_appended);
        appended.logsumexp[i] = pass.appended_logsumexp;
      }
      if (options.on_layer) {
        KVLAB_RETURN_IF_ERROR(options.on_layer(pass.layer, state, appended));
      }
      layer = {};
      appended.queries[i].reset();
      appended.keys[i].reset();
      appended.logsumexp[i].reset();
      pass.appended_queries.reset();
    }
    const at::Tensor last = chunks.back().hidden;
    return logits(rms_norm(last, weights_.final_norm, config_.rms_norm_eps)).select(0, 0);
  } catch (const std::exception& error) {
    return compute_failure(fmt::format("prefill of {} tokens", prompt_len), error);
  }
}

// The chunk's keys and values into the layer, its queries to whoever wants them, and attention.
// Returns [rows, num_heads * head_dim]: all rows, or in the last layer the prompt's last row, or
// undefined where that is not in this chunk.
at::Tensor TransformerLm::attend_chunk(LayerPass& pass, const LayerChunk& chunk) {
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(pass.layer)];
  const double eps = config_.rms_norm_eps;
  const int64_t first = chunk.first;
  const int64_t rows = chunk.hidden.size(0);
  const int64_t count = rows - chunk.appended;  // of the prompt
  const int64_t end = first + count;
  const int64_t head_dim = config_.head_dim;
  const RotaryEmbedding::Tables angles = rotary_.tables(first, rows);
  const at::Tensor layer_keys = pass.keys.narrow(1, first, rows);
  const at::Tensor layer_values = pass.values.narrow(1, first, rows);
  at::Tensor queries;
  if (use_cpu_kernels(chunk.hidden)) {  // as prefill() does it
    queries =
        at::empty({rows, config_.num_heads, head_dim}, chunk.hidden.options()).transpose(0, 1);
    PrefillRowsArgs args = rows_before(pass.layer, chunk.hidden, angles);
    args.updates = pass.appended_updates;
    args.updates_from = count;
    args.rotate_queries = pass.moments == nullptr;
    args.queries = mutable_head_rows(queries);
    args.keys = mutable_head_rows(layer_keys);
    args.values = mutable_head_rows(layer_values);
    prefill_rows(args);
  } else {
    const at::Tensor normed = rms_norm(chunk.hidden, layer.attention_norm, eps);
    const at::Tensor keys = as_heads(apply_linear(normed, layer.k, layer.k_bias), head_dim);
    rotate_into(keys, angles.cos, angles.sin, layer.k_norm, eps, layer_keys);
    layer_values.copy_(as_heads(apply_linear(normed, layer.v, layer.v_bias), head_dim));
    queries = as_heads(apply_linear(normed, layer.q, layer.q_bias), head_dim);
    if (pass.moments != nullptr) {
      rotate_into(queries, {}, {}, layer.q_norm, eps, queries);
    } else {
      rotate_into(queries, angles.cos, angles.sin, layer.q_norm, eps, queries);
    }
  }
  if (pass.moments != nullptr) {  // of the queries before rotation
    const int64_t skip = std::clamp<int64_t>(pass.moments_from - first, 0, count);
    pass.moments->add(queries.narrow(1, skip, count - skip));
    rotate_into(queries, angles.cos, angles.sin, {}, 0, queries);
  }
  const at::Tensor& tail_queries = pass.state->tail_queries;
  const int64_t tail_first = pass.prompt_len - tail_queries.size(1);
  const int64_t tail_begin = std::max(first, tail_first);
  if (tail_begin < end) {
    tail_queries.narrow(1, tail_begin - tail_first, end - tail_begin)
        .copy_(queries.narrow(1, tail_begin - first, end - tail_begin));
  }
  if (chunk.appended > 0) {
    pass.appended_queries = queries.narrow(1, count, chunk.appended);
    pass.appended_logsumexp.reset();
  }

  ChunkAttentionArgs args;
  args.queries = queries;
  args.keys = pass.keys.narrow(1, 0, first + rows);
  args.values = pass.values.narrow(1, 0, first + rows);
  args.scale = attention_scale();
  args.sliding_window = config_.sliding_window;
  const bool last_layer = pass.layer + 1 == config_.num_layers;
  const bool holds_last_row = end == pass.prompt_len;
  if (last_layer && !pass.attention_sums) {
    if (!holds_last_row) {
      return {};
    }
    args.queries = queries.narrow(1, count - 1, 1);
    args.keys = pass.keys.narrow(1, 0, end);
    args.values = pass.values.narrow(1, 0, end);
    return chunk_attention(args).output.flatten(1);
  }
  args.want_logsumexp = pass.attention_sums || chunk.appended > 0;
  const ChunkAttention attended = chunk_attention(args);
  if (pass.attention_sums) {
    ChunkAttentionArgs of_prompt = args;
    of_prompt.queries = queries.narrow(1, 0, count);
    of_prompt.keys = pass.keys.narrow(1, 0, end);
    of_prompt.values = pass.values.narrow(1, 0, end);
    add_chunk_attention_sums(of_prompt, attended.logsumexp.narrow(1, 0, count).contiguous(),
                             pass.state->attention_sums);
  }
  const at::Tensor output = attended.output.flatten(1);
  if (last_layer) {
    return holds_last_row ? output.narrow(0, count - 1, 1) : at::Tensor();
  }
  if (chunk.appended > 0) {
    pass.appended_logsumexp = attended.logsumexp.narrow(1, count, chunk.appended).contiguous();
  }
  return output;
}

// The rest of the layer, row by row.
void TransformerLm::finish_chunk(const LayerPass& pass, const at::Tensor& attended,
                                 LayerChunk& chunk) {
  if (!attended.defined()) {
    chunk.hidden.reset();
    return;
  }
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(pass.layer)];
  if (pass.layer + 1 == config_.num_layers) {  // the prompt's last row alone
    const int64_t last = chunk.hidden.size(0) - chunk.appended - 1;
    chunk.hidden = chunk.hidden.narrow(0, last, 1).contiguous();
    chunk.appended = 0;
  }
  if (use_cpu_kernels(chunk.hidden)) {
    PrefillRowsArgs args = rows_after(pass.layer, attended, chunk.hidden);
    args.updates = pass.appended_updates;
    args.updates_from = chunk.hidden.size(0) - chunk.appended;
    prefill_rows(args);  // its last norm's result is not kept
    return;
  }
  const NormedSum after = add_rms_norm(chunk.hidden, apply_linear(attended, layer.o),
                                       layer.mlp_norm, config_.rms_norm_eps);
  const at::Tensor inner =
      silu_mul(apply_linear(after.normed, layer.gate), apply_linear(after.normed, layer.up));
  chunk.hidden = after.sum.add_(apply_linear(inner, layer.down));
}

// The rows behind the prompt through the same layer, over the prompt's keys and their own.
void TransformerLm::run_appended(LayerPass& pass, const RowAdapter* adapter, at::Tensor& hidden) {
  std::optional<RowUpdates> updates;  // of the kernels
  if (use_cpu_kernels(hidden)) {
    updates = adapter != nullptr ? adapter->kernel_updates(pass.layer) : RowUpdates{};
  }
  project_appended(pass, adapter, updates, hidden);
  pass.appended_logsumexp.reset();
  if (pass.layer + 1 == config_.num_layers) {
    return;  // nothing of them is read any more
  }
  ChunkAttentionArgs args;
  args.queries = pass.appended_queries;
  args.keys = pass.keys;
  args.values = pass.values;
  args.scale = attention_scale();
  args.sliding_window = config_.sliding_window;
  args.want_logsumexp = true;
  const ChunkAttention attention = chunk_attention(args);
  pass.appended_logsumexp = attention.logsumexp;
  const at::Tensor attended = attention.output.flatten(1);
  if (updates) {
    PrefillRowsArgs rows = rows_after(pass.layer, attended, hidden);
    rows.updates = *updates;
    prefill_rows(rows);
    return;
  }
  const MlpRows mlp = mlp_rows(pass.layer, attended, hidden, adapter);
  hidden = mlp.hidden.add_(mlp.down);
}

// Their queries, and their keys and values behind the prompt's.
void TransformerLm::project_appended(LayerPass& pass, const RowAdapter* adapter,
                                     const std::optional<RowUpdates>& updates,
                                     const at::Tensor& hidden) {
  const LayerWeights& layer = weights_.layers[static_cast<size_t>(pass.layer)];
  const double eps = config_.rms_norm_eps;
  const int64_t count = hidden.size(0);
  const int64_t head_dim = config_.head_dim;
  const RotaryEmbedding::Tables angles = rotary_.tables(pass.prompt_len, count);
  const at::Tensor keys = pass.keys.narrow(1, pass.prompt_len, count);
  const at::Tensor values = pass.values.narrow(1, pass.prompt_len, count);
  pass.appended_queries = at::empty({config_.num_heads, count, head_dim}, hidden.options());
  if (updates) {
    PrefillRowsArgs args = rows_before(pass.layer, hidden, angles);
    args.updates = *updates;
    args.queries = mutable_head_rows(pass.appended_queries);
    args.keys = mutable_head_rows(keys);
    args.values = mutable_head_rows(values);
    prefill_rows(args);
    return;
  }
  const int64_t q_size = config_.num_heads * head_dim;
  const int64_t kv_size = config_.num_kv_heads * head_dim;
  const at::Tensor normed = rms_norm(hidden, layer.attention_norm, eps);
  const at::Tensor qkv = project_rows(pass.layer, normed, adapter);
  const auto heads_of = [&](int64_t begin, int64_t size) {
    return qkv.narrow(1, begin, size).unflatten(1, {size / head_dim, head_dim}).transpose(0, 1);
  };
  rotate_into(heads_of(0, q_size), angles.cos, angles.sin, layer.q_norm, eps,
              pass.appended_queries);
  rotate_into(heads_of(q_size, kv_size), angles.cos, angles.sin, layer.k_norm, eps, keys);
  values.copy_(heads_of(q_size + kv_size, kv_size));
}

absl::StatusOr<CapturedQueries> TransformerLm::run_rows(const PromptState& prompt,
                                                        const at::Tensor& embeddings,
                                                        const RowAdapter* adapter) {
  KVLAB_RETURN_IF_ERROR(check_appended(embeddings, config_));
  const int64_t prompt_len = prompt.prompt_len();
  const int64_t count = embeddings.size(0);
  KVLAB_RETURN_IF_ERROR(check_positions(prompt_len + count, "the prompt with its rows"));
  const c10::InferenceMode inference;
  try {
    LayerPass pass(config_, prompt_len, count, at::TensorOptions().dtype(dtype_).device(device_));
    at::Tensor rows =
        embeddings.to(device_, dtype_, /*non_blocking=*/false, /*copy=*/true).contiguous();
    CapturedQueries result;
    for (const LayerState& layer : prompt.layers) {
      if (pass.layer + 1 < config_.num_layers) {  // the last layer's rows attend to nothing
        copy_first_rows(layer.keys, pass.keys);
        copy_first_rows(layer.values, pass.values);
      }
      run_appended(pass, adapter, rows);
      result.queries.push_back(pass.appended_queries);
      result.keys.push_back(pass.keys.narrow(1, prompt_len, count).clone());
      result.logsumexp.push_back(pass.appended_logsumexp);
      ++pass.layer;
    }
    return result;
  } catch (const std::exception& error) {
    return compute_failure(fmt::format("running {} rows after the prompt", count), error);
  }
}

}  // namespace kvlab
