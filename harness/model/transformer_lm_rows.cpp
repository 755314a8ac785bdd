// Decoding: a few rows, each over its own cache. Every step treats rows one by one or through
// RowLinear, so that a row's result does not depend on what runs beside it.
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "harness/base/check.h"
#include "harness/base/status.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/kernels/decode_attention.h"
#include "harness/model/attention_cuda_at.h"
#include "harness/model/compute_failure.h"
#include "harness/model/layer_ops.h"
#include "harness/model/transformer_lm.h"

namespace kvlab {
namespace {

using Target = RowAdapter::Target;

void add_delta(const RowAdapter* adapter, int64_t layer, Target target, const at::Tensor& rows,
               at::Tensor out) {
  if (adapter != nullptr) {
    adapter->add_delta(layer, target, rows, out);
  }
}

// Appends rows [heads, count, head_dim] to have [heads, rows so far, head_dim], a view of storage
// with room to grow, so that a long reply's queries are not copied at every step.
void append_rows(std::vector<at::Tensor>& layers, size_t layer, const at::Tensor& rows) {
  if (layers.size() <= layer) {
    layers.resize(layer + 1);
  }
  at::Tensor& have = layers[layer];
  const int64_t head_dim = rows.size(2);
  const int64_t old_rows = have.defined() ? have.size(1) : 0;
  const int64_t new_rows = old_rows + rows.size(1);
  const int64_t capacity = have.defined() ? have.stride(0) / head_dim : 0;
  if (new_rows > capacity) {
    const at::Tensor grown =
        at::empty({rows.size(0), std::max(new_rows, 2 * capacity), head_dim}, rows.options());
    if (old_rows > 0) {
      grown.narrow(1, 0, old_rows).copy_(have);
    }
    have = grown.narrow(1, 0, old_rows);
  }
  have = have.as_strided({rows.size(0), new_rows, head_dim}, have.strides());
  have.narrow(1, old_rows, rows.size(1)).copy_(rows);
}

// queries [num_heads, rows, head_dim], keys [num_kv_heads, rows, head_dim] -> each row's collector;
// neighbours with the same one go in together.
void capture_rows(std::span<CapturedQueries* const> captured, size_t layer,
                  const at::Tensor& queries, const at::Tensor& keys) {
  for (size_t first = 0; first < captured.size();) {
    size_t end = first + 1;
    while (end < captured.size() && captured[end] == captured[first]) {
      ++end;
    }
    if (captured[first] != nullptr) {
      const auto begin = static_cast<int64_t>(first);
      const auto count = static_cast<int64_t>(end - first);
      append_rows(captured[first]->queries, layer, queries.narrow(1, begin, count));
      append_rows(captured[first]->keys, layer, keys.narrow(1, begin, count));
    }
    first = end;
  }
}

// One query over one KV head's visible entries, for devices without the ragged kernel: [group,
// head_dim] x [entries, head_dim] in float32.
at::Tensor attend_one(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values,
                      double scale) {
  const at::Tensor scores =
      at::matmul(queries.to(at::kFloat), keys.to(at::kFloat).transpose(0, 1)) * scale;
  return at::matmul(at::softmax(scores, -1), values.to(at::kFloat)).to(queries.scalar_type());
}

}  // namespace

at::Tensor TransformerLm::logits(const at::Tensor& hidden) const {
  return lm_head_.forward(hidden.contiguous(), /*to_float32=*/true);
}

// queries [rows, num_heads, head_dim] -> the same shape.
at::Tensor TransformerLm::attend_rows(int64_t layer, std::span<const Row> rows,
                                      const at::Tensor& queries) const {
  const int64_t group = config_.group_size();
  const int64_t head_dim = config_.head_dim;
  const auto layer_index = static_cast<size_t>(layer);
  at::Tensor output = at::empty_like(queries);
  std::vector<DecodeHead> heads;
  heads.reserve(rows.size() * static_cast<size_t>(config_.num_kv_heads));
  const int64_t row_bytes = head_dim * queries.element_size();
  const bool cpu = use_cpu_kernels(queries);
  const bool ragged = cpu || use_cuda_kernels(queries);
  for (size_t r = 0; r < rows.size(); ++r) {
    const Row& row = rows[r];
    const KvCache& cache = *row.cache;
    const int64_t prompt_end = row.position - row.slot;  // logical position of slot 0
    // With a sliding window only positions from here on are seen.
    const int64_t window_begin =
        config_.sliding_window > 0 ? std::max<int64_t>(0, row.position - config_.sliding_window + 1)
                                   : 0;
    const int64_t new_begin = std::max<int64_t>(0, window_begin - prompt_end);
    const int64_t new_len = row.slot + 1 - new_begin;
    for (int64_t h = 0; h < config_.num_kv_heads; ++h) {
      const int64_t prompt_begin = cache.first_entry_from(layer, h, window_begin);
      const auto head = static_cast<size_t>(h);
      if (!ragged) {
        const auto r_index = static_cast<int64_t>(r);
        const at::Tensor& prompt_keys = cache.prompt_keys()[layer_index][head];
        const at::Tensor& prompt_values = cache.prompt_values()[layer_index][head];
        const int64_t prompt_len = prompt_keys.size(0) - prompt_begin;
        const at::Tensor keys =
            at::cat({prompt_keys.narrow(0, prompt_begin, prompt_len),
                     cache.new_keys()[layer_index][h].narrow(0, new_begin, new_len)});
        const at::Tensor values =
            at::cat({prompt_values.narrow(0, prompt_begin, prompt_len),
                     cache.new_values()[layer_index][h].narrow(0, new_begin, new_len)});
        output[r_index]
            .narrow(0, h * group, group)
            .copy_(attend_one(queries[r_index].narrow(0, h * group, group), keys, values,
                              attention_scale()));
        continue;
      }
      const KvCache::HeadView& view = cache.head(layer, h);
      const int64_t offset = (static_cast<int64_t>(r) * config_.num_heads + h * group) * row_bytes;
      DecodeHead& entry = heads.emplace_back();
      entry.queries = static_cast<const char*>(queries.const_data_ptr()) + offset;
      entry.output = static_cast<char*>(output.data_ptr()) + offset;
      entry.prompt_keys = static_cast<const char*>(view.prompt_keys) + prompt_begin * row_bytes;
      entry.prompt_values = static_cast<const char*>(view.prompt_values) + prompt_begin * row_bytes;
      entry.prompt_len = view.prompt_len - prompt_begin;
      entry.new_keys = static_cast<const char*>(view.new_keys) + new_begin * row_bytes;
      entry.new_values = static_cast<const char*>(view.new_values) + new_begin * row_bytes;
      entry.new_len = new_len;
    }
  }
  if (ragged) {
    DecodeAttentionArgs args;
    args.type = element_type(queries.scalar_type());
    args.group_size = group;
    args.head_dim = head_dim;
    args.scale = static_cast<float>(attention_scale());
    args.heads = heads;
    if (cpu) {
      decode_attention(args);
    } else if constexpr (kCudaKernels) {
      decode_attention_cuda_at(args, queries);
    }
  }
  return output;
}

// keys, values [num_kv_heads, rows, head_dim] -> every row's slot of its own cache.
void TransformerLm::store_rows(int64_t layer, std::span<const Row> rows, const at::Tensor& keys,
                               const at::Tensor& values) const {
  const auto index = static_cast<size_t>(layer);
  if (!use_cpu_kernels(keys)) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto row = static_cast<int64_t>(r);
      const KvCache& cache = *rows[r].cache;
      cache.new_keys()[index].narrow(1, rows[r].slot, 1).copy_(keys.narrow(1, row, 1));
      cache.new_values()[index].narrow(1, rows[r].slot, 1).copy_(values.narrow(1, row, 1));
    }
    return;
  }
  const HeadRows from_keys = head_rows(keys);
  const HeadRows from_values = head_rows(values);
  const int64_t element = keys.element_size();
  const auto row_bytes = static_cast<size_t>(config_.head_dim * element);
  const auto row_at = [element](const HeadRows& source, int64_t head, size_t row) {
    return static_cast<const char*>(source.data) +
           (head * source.head_stride + static_cast<int64_t>(row) * source.row_stride) * element;
  };
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto slot = static_cast<size_t>(rows[r].slot) * row_bytes;
    for (int64_t h = 0; h < config_.num_kv_heads; ++h) {
      const KvCache::HeadView& view = rows[r].cache->head(layer, h);
      std::memcpy(static_cast<char*>(view.new_keys) + slot, row_at(from_keys, h, r), row_bytes);
      std::memcpy(static_cast<char*>(view.new_values) + slot, row_at(from_values, h, r), row_bytes);
    }
  }
}

// normed [rows, hidden_size] -> queries, keys and values side by side, before rotation.
at::Tensor TransformerLm::project_rows(int64_t layer, const at::Tensor& normed,
                                       const RowAdapter* adapter) const {
  const int64_t q_size = config_.num_heads * config_.head_dim;
  const int64_t kv_size = config_.num_kv_heads * config_.head_dim;
  at::Tensor qkv = row_layers_[static_cast<size_t>(layer)].qkv.forward(normed);
  add_delta(adapter, layer, Target::kQ, normed, qkv.narrow(1, 0, q_size));
  add_delta(adapter, layer, Target::kK, normed, qkv.narrow(1, q_size, kv_size));
  add_delta(adapter, layer, Target::kV, normed, qkv.narrow(1, q_size + kv_size, kv_size));
  return qkv;
}

// attended [rows, num_heads * head_dim] through the rest of the layer; `hidden` may be overwritten.
TransformerLm::MlpRows TransformerLm::mlp_rows(int64_t layer, const at::Tensor& attended,
                                               const at::Tensor& hidden,
                                               const RowAdapter* adapter) const {
  const RowLayer& linears = row_layers_[static_cast<size_t>(layer)];
  const int64_t inner_size = config_.intermediate_size;
  const at::Tensor projected = linears.o.forward(attended);
  add_delta(adapter, layer, Target::kO, attended, projected);
  const NormedSum after =
      add_rms_norm(hidden, projected, weights_.layers[static_cast<size_t>(layer)].mlp_norm,
                   config_.rms_norm_eps);
  const at::Tensor gate_up = linears.gate_up.forward(after.normed);
  const at::Tensor gate = gate_up.narrow(1, 0, inner_size);
  const at::Tensor up = gate_up.narrow(1, inner_size, inner_size);
  add_delta(adapter, layer, Target::kGate, after.normed, gate);
  add_delta(adapter, layer, Target::kUp, after.normed, up);
  const at::Tensor inner = silu_mul(gate, up);
  const at::Tensor down = linears.down.forward(inner);
  add_delta(adapter, layer, Target::kDown, inner, down);
  return {after.sum, down};
}

// hidden [rows, hidden_size] -> final hidden states after the last norm. captured: empty, or for
// each row null or where its queries and keys go.
at::Tensor TransformerLm::forward_rows(at::Tensor hidden, std::span<const Row> rows,
                                       std::span<CapturedQueries* const> captured) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const int64_t head_dim = config_.head_dim;
  const int64_t q_size = config_.num_heads * head_dim;
  const int64_t kv_size = config_.num_kv_heads * head_dim;
  const double eps = config_.rms_norm_eps;

  int64_t past_last = 0;
  for (const Row& row : rows) {
    past_last = std::max(past_last, row.position + 1);
  }
  rotary_.tables(0, past_last);  // grown once, so that all rows share one table
  at::Tensor cos = at::empty({num_rows, head_dim / 2}, hidden.options().dtype(at::kFloat));
  at::Tensor sin = at::empty_like(cos);
  for (int64_t r = 0; r < num_rows; ++r) {
    const auto row_angles = rotary_.tables(rows[static_cast<size_t>(r)].position, 1);
    cos.narrow(0, r, 1).copy_(row_angles.cos);
    sin.narrow(0, r, 1).copy_(row_angles.sin);
  }

  if (use_cpu_kernels(hidden)) {
    return forward_rows_cpu(hidden, rows, captured, {cos, sin});
  }
  at::Tensor normed = rms_norm(hidden, weights_.layers.front().attention_norm, eps);
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    const auto index = static_cast<size_t>(i);
    const LayerWeights& layer = weights_.layers[index];
    const bool last = i + 1 == config_.num_layers;

    const at::Tensor qkv = project_rows(i, normed, /*adapter=*/nullptr);
    const auto heads_of = [&](int64_t begin, int64_t size) {
      return qkv.narrow(1, begin, size).unflatten(1, {size / head_dim, head_dim}).transpose(0, 1);
    };
    at::Tensor queries = at::empty({num_rows, config_.num_heads, head_dim}, qkv.options());
    rotate_into(heads_of(0, q_size), cos, sin, layer.q_norm, eps, queries.transpose(0, 1));
    const at::Tensor keys = heads_of(q_size, kv_size);
    rotate_into(keys, cos, sin, layer.k_norm, eps, keys);
    const at::Tensor values = heads_of(q_size + kv_size, kv_size);
    store_rows(i, rows, keys, values);
    capture_rows(captured, index, queries.transpose(0, 1), keys);
    const at::Tensor attended = attend_rows(i, rows, queries).flatten(1);
    const MlpRows mlp = mlp_rows(i, attended, hidden, /*adapter=*/nullptr);
    const NormedSum after_mlp =
        add_rms_norm(mlp.hidden, mlp.down,
                     last ? weights_.final_norm : weights_.layers[index + 1].attention_norm, eps);
    hidden = after_mlp.sum;
    normed = after_mlp.normed;
  }
  return normed;
}

// The same in two calls of the CPU's kernels a layer.
at::Tensor TransformerLm::forward_rows_cpu(const at::Tensor& hidden, std::span<const Row> rows,
                                           std::span<CapturedQueries* const> captured,
                                           const RotaryEmbedding::Tables& angles) {
  const int64_t num_rows = hidden.size(0);
  const auto heads = [&](int64_t num_heads) {
    return at::empty({num_rows, num_heads, config_.head_dim}, hidden.options());
  };
  const at::Tensor queries = heads(config_.num_heads);
  const at::Tensor keys = heads(config_.num_kv_heads).transpose(0, 1);
  const at::Tensor values = heads(config_.num_kv_heads).transpose(0, 1);
  at::Tensor attended;
  for (int64_t i = 0; i < config_.num_layers; ++i) {
    PrefillRowsArgs args = rows_between(i - 1, attended, hidden, angles);
    args.queries = mutable_head_rows(queries.transpose(0, 1));
    args.keys = mutable_head_rows(keys);
    args.values = mutable_head_rows(values);
    prefill_rows(args);
    store_rows(i, rows, keys, values);
    capture_rows(captured, static_cast<size_t>(i), queries.transpose(0, 1), keys);
    attended = attend_rows(i, rows, queries).flatten(1);
  }
  at::Tensor normed = at::empty_like(hidden);
  PrefillRowsArgs args = rows_between(config_.num_layers - 1, attended, hidden, angles);
  args.normed = normed.data_ptr();
  prefill_rows(args);
  return normed;
}

absl::StatusOr<at::Tensor> TransformerLm::decode_step(std::span<const int32_t> token_ids,
                                                      std::span<KvCache* const> caches,
                                                      std::span<CapturedQueries* const> captured) {
  KVLAB_CHECK(token_ids.size() == caches.size());
  KVLAB_CHECK(captured.empty() || captured.size() == caches.size());
  KVLAB_RETURN_IF_ERROR(check_token_ids(token_ids, "the decoding step"));
  std::vector<Row> rows;
  for (KvCache* cache : caches) {
    KVLAB_CHECK(cache->num_new() < cache->max_new_tokens());
    KVLAB_RETURN_IF_ERROR(check_positions(cache->next_position() + 1, "the decoding step"));
    rows.push_back({cache, cache->next_position(), cache->num_new()});
  }
  const c10::InferenceMode inference;
  try {
    const at::Tensor hidden = forward_rows(embed(token_ids), rows, captured);
    for (KvCache* cache : caches) {
      cache->advance(1);
    }
    return logits(hidden);
  } catch (const std::exception& error) {
    return compute_failure(fmt::format("decoding a step of {} arms", caches.size()), error);
  }
}

absl::StatusOr<at::Tensor> TransformerLm::extend(std::span<const int32_t> token_ids, KvCache& cache,
                                                 CapturedQueries* captured) {
  KVLAB_RETURN_IF_ERROR(check_token_ids(token_ids, "the continuation"));
  const auto count = static_cast<int64_t>(token_ids.size());
  KVLAB_CHECK(cache.num_new() + count <= cache.max_new_tokens());
  KVLAB_RETURN_IF_ERROR(check_positions(cache.next_position() + count, "the continuation"));
  std::vector<Row> rows;
  for (int64_t i = 0; i < count; ++i) {
    rows.push_back({&cache, cache.next_position() + i, cache.num_new() + i});
  }
  const std::vector<CapturedQueries*> row_captured(captured == nullptr ? 0 : rows.size(), captured);
  const c10::InferenceMode inference;
  try {
    const at::Tensor hidden = forward_rows(embed(token_ids), rows, row_captured);
    cache.advance(count);
    return logits(hidden.narrow(0, count - 1, 1)).select(0, 0);
  } catch (const std::exception& error) {
    return compute_failure(fmt::format("a continuation of {} tokens", count), error);
  }
}

}  // namespace kvlab
