// The model runtime as methods and the sweep see it.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "harness/cache/kv_cache.h"
#include "harness/cache/prompt_state.h"
#include "harness/model/model_config.h"

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
};

class CausalLm {
 public:
  // A Hugging Face directory: config.json, safetensors (sharded or not).
  static absl::StatusOr<std::shared_ptr<CausalLm>> load(const std::filesystem::path& model_dir,
                                                        const LoadOptions& options);
  virtual ~CausalLm() = default;

  virtual const ModelConfig& config() const = 0;
  virtual at::ScalarType dtype() const = 0;
  virtual at::Device device() const = 0;

  // Runs the prompt once, in chunks. Errors: empty prompt, ids outside the vocabulary, more tokens
  // than positions.
  virtual absl::StatusOr<std::shared_ptr<PromptState>> prefill(std::span<const int32_t> token_ids,
                                                               const PrefillOptions& options) = 0;

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
