// The model runtime as methods and the sweep see it.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/cache/kv_cache.h"
#include "harness/cache/prompt_state.h"
#include "harness/model/model_config.h"
#include "harness/model/row_updates.h"

namespace kvlab {

struct LoadOptions {
  at::ScalarType dtype = at::kBFloat16;  // kFloat or kBFloat16
  at::Device device = at::kCPU;
  int64_t num_layers = 0;  // only the first so many layers (SpecKV's shallow draft); 0: all
};

struct PrefillOptions {
  int64_t chunk_size = 2048;
  PrefillNeeds needs;
};

// Low-rank updates of the seven linear layers of every decoder layer, active on lookahead rows
// only. Layout in methods/lookahead_kv/adapter.h; the runtime asks for one delta at a time.
class RowAdapter {
 public:
  virtual ~RowAdapter() = default;
  enum class Target { kQ, kK, kV, kO, kGate, kUp, kDown };
  // rows: [num_rows, in_features]; adds the target's delta to out: [num_rows, out_features].
  virtual void add_delta(int64_t layer, Target target, const at::Tensor& rows,
                         at::Tensor& out) const = 0;
  // The layer's updates as the CPU's kernels take them; nullopt, and then for every layer: only
  // add_delta knows them.
  virtual std::optional<RowUpdates> kernel_updates(int64_t /*layer*/) const { return std::nullopt; }
};

// Rows that stand behind the prompt and run through the model with it: learned tokens at positions
// prompt_len, prompt_len + 1, ..., causal like any others.
struct AppendedRows {
  at::Tensor embeddings;  // [num_rows, hidden_size]; undefined: none
  std::shared_ptr<const RowAdapter> adapter;

  int64_t count() const { return embeddings.defined() ? embeddings.size(0) : 0; }
};

// Asked when a layer is done. `prompt` has every token id, and this layer's tensors in its place in
// `layers`; the others are empty. `appended` holds what the layer's appended rows asked in the same
// way. All of it is overwritten by the next layer.
using LayerSink = std::function<absl::Status(int64_t layer, const PromptState& prompt,
                                             const CapturedQueries& appended)>;

struct LayerPrefillOptions {
  int64_t chunk_size = 2048;
  PrefillNeeds needs;
  AppendedRows appended;
  LayerSink on_layer;
};

class CausalLm {
 public:
  // A Hugging Face directory: config.json, safetensors (sharded or not).
  static absl::StatusOr<std::shared_ptr<CausalLm>> load(const std::filesystem::path& model_dir,
                                                        const LoadOptions& options);
  // A model of this shape with random weights (random_weights.h), to measure with.
  static absl::StatusOr<std::shared_ptr<CausalLm>> random(const ModelConfig& config,
                                                          const LoadOptions& options,
                                                          uint64_t seed);
  virtual ~CausalLm() = default;

  virtual const ModelConfig& config() const = 0;
  virtual at::ScalarType dtype() const = 0;
  virtual at::Device device() const = 0;

  // Runs the prompt once, in chunks. Errors: empty prompt, ids outside the vocabulary, more tokens
  // than positions.
  virtual absl::StatusOr<std::shared_ptr<PromptState>> prefill(std::span<const int32_t> token_ids,
                                                               const PrefillOptions& options) = 0;

  // The same layer by layer: all chunks go through a layer before the next one begins, so that only
  // one layer's keys and values exist at a time, beside the activations [prompt_len, hidden_size].
  // Returns the logits [vocab_size] float32 of the last prompt token. Prompt rows are those of
  // prefill() (to within rounding where rows are appended to their chunk). An error of on_layer
  // ends it.
  virtual absl::StatusOr<at::Tensor> prefill_by_layers(std::span<const int32_t> token_ids,
                                                       const LayerPrefillOptions& options) = 0;

  // One token for each cache: token_ids[i] at caches[i]->next_position(). Returns logits
  // [caches.size(), vocab_size] float32 and advances every cache. A row depends on its own cache
  // and token only, bit for bit, whatever runs beside it. `captured[i]`, where not null, gets this
  // step's queries (one row) appended.
  virtual absl::StatusOr<at::Tensor> decode_step(std::span<const int32_t> token_ids,
                                                 std::span<KvCache* const> caches,
                                                 std::span<CapturedQueries* const> captured) = 0;

  // Several tokens over one cache (a question after a compressed context), causal among
  // themselves. Returns the last token's logits [vocab_size] float32; `captured` as above.
  virtual absl::StatusOr<at::Tensor> extend(std::span<const int32_t> token_ids, KvCache& cache,
                                            CapturedQueries* captured) = 0;

  // Rows given as input embeddings [num_rows, hidden_size], at positions prompt_len..., over a
  // finished prompt, with an optional adapter: LookaheadKV's learned tokens. The prompt is not
  // changed. Returns every layer's queries and keys of the rows.
  virtual absl::StatusOr<CapturedQueries> run_rows(const PromptState& prompt,
                                                   const at::Tensor& embeddings,
                                                   const RowAdapter* adapter) = 0;
};

}  // namespace kvlab
