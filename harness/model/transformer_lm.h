// The decoder of the Llama family (Llama, Qwen2, Qwen3, Mistral) behind CausalLm, with its weights
// in sight for training code.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "harness/model/attention.h"
#include "harness/model/causal_lm.h"
#include "harness/model/prefill_rows.h"
#include "harness/model/query_moments.h"
#include "harness/model/rotary.h"
#include "harness/model/row_linear.h"
#include "harness/model/weights.h"

namespace kvlab {

class TransformerLm final : public CausalLm {
 public:
  static absl::StatusOr<std::shared_ptr<TransformerLm>> load(const std::filesystem::path& model_dir,
                                                             const LoadOptions& options);
  static absl::StatusOr<std::shared_ptr<TransformerLm>> random(const ModelConfig& config,
                                                               const LoadOptions& options,
                                                               uint64_t seed);

  const ModelConfig& config() const override { return config_; }
  at::ScalarType dtype() const override { return dtype_; }
  at::Device device() const override { return device_; }
  const ModelWeights& weights() const { return weights_; }
  RotaryEmbedding& rotary() { return rotary_; }
  double attention_scale() const;  // 1 / sqrt(head_dim)

  absl::StatusOr<std::shared_ptr<PromptState>> prefill(std::span<const int32_t> token_ids,
                                                       const PrefillOptions& options) override;
  absl::StatusOr<at::Tensor> prefill_by_layers(std::span<const int32_t> token_ids,
                                               const LayerPrefillOptions& options) override;
  absl::StatusOr<at::Tensor> decode_step(std::span<const int32_t> token_ids,
                                         std::span<KvCache* const> caches,
                                         std::span<CapturedQueries* const> captured) override;
  absl::StatusOr<at::Tensor> extend(std::span<const int32_t> token_ids, KvCache& cache,
                                    CapturedQueries* captured) override;
  absl::StatusOr<CapturedQueries> run_rows(const PromptState& prompt, const at::Tensor& embeddings,
                                           const RowAdapter* adapter) override;

 private:
  // One layer's linear maps as the row path uses them.
  struct RowLayer {
    RowLinear qkv;  // [q; k; v]
    RowLinear o;
    RowLinear gate_up;  // [gate; up]
    RowLinear down;
  };
  // A row of the row path: it writes its key and value at `slot` of the cache's new entries and
  // sees the entries up to there.
  struct Row {
    KvCache* cache;
    int64_t position;
    int64_t slot;
  };
  // A layer's output is their sum, which the next norm makes.
  struct MlpRows {
    at::Tensor hidden;  // [rows, hidden_size], with attention added
    at::Tensor down;
  };
  struct PrefillProgress;
  // Rows of the prompt on their way through the layers.
  struct PrefillChunk {
    int64_t first = 0;   // the first row's position
    at::Tensor hidden;   // [rows, hidden_size]
    at::Tensor queries;  // [num_heads, rows, head_dim], of the layer to come
    at::Tensor normed;   // [rows, hidden_size]; on the CPU only after the last layer
  };
  struct LayerPass;
  struct LayerChunk;

  TransformerLm(ModelConfig config, ModelWeights weights, at::ScalarType dtype, at::Device device);

  absl::Status check_token_ids(std::span<const int32_t> token_ids, std::string_view what) const;
  absl::Status check_positions(int64_t past_last, std::string_view what) const;
  at::Tensor embed(std::span<const int32_t> token_ids) const;

  // transformer_lm_prefill.cpp
  void prefill_chunk(int64_t first, int64_t count, PrefillProgress& progress);
  void prefill_rows_between(int64_t after, const at::Tensor& attended, PrefillChunk& chunk,
                            PrefillProgress& progress);
  PrefillRowsArgs rows_between(int64_t after, const at::Tensor& attended, const at::Tensor& hidden,
                               const RotaryEmbedding::Tables& angles) const;
  PrefillRowsArgs rows_before(int64_t layer, const at::Tensor& hidden,
                              const RotaryEmbedding::Tables& angles) const;
  PrefillRowsArgs rows_after(int64_t layer, const at::Tensor& attended,
                             const at::Tensor& hidden) const;
  PrefillRowsArgs rows_alone(const at::Tensor& hidden, const at::Tensor& norm) const;
  void add_half_after(int64_t layer, const at::Tensor& attended, PrefillRowsArgs& args) const;
  void prefill_rows_cpu(int64_t after, const at::Tensor& attended, PrefillChunk& chunk,
                        PrefillProgress& progress);
  at::Tensor prefill_attention_part(int64_t layer, const PrefillChunk& chunk,
                                    PrefillProgress& progress);

  // transformer_lm_layers.cpp
  at::Tensor attend_chunk(LayerPass& pass, const LayerChunk& chunk);
  void finish_chunk(const LayerPass& pass, const at::Tensor& attended, LayerChunk& chunk);
  void run_appended(LayerPass& pass, const RowAdapter* adapter, at::Tensor& hidden);
  void project_appended(LayerPass& pass, const RowAdapter* adapter,
                        const std::optional<RowUpdates>& updates, const at::Tensor& hidden);

  // transformer_lm_rows.cpp
  at::Tensor forward_rows(at::Tensor hidden, std::span<const Row> rows,
                          std::span<CapturedQueries* const> captured);
  at::Tensor forward_rows_cpu(const at::Tensor& hidden, std::span<const Row> rows,
                              std::span<CapturedQueries* const> captured,
                              const RotaryEmbedding::Tables& angles);
  at::Tensor project_rows(int64_t layer, const at::Tensor& normed, const RowAdapter* adapter) const;
  MlpRows mlp_rows(int64_t layer, const at::Tensor& attended, const at::Tensor& hidden,
                   const RowAdapter* adapter) const;
  at::Tensor attend_rows(int64_t layer, std::span<const Row> rows, const at::Tensor& queries) const;
  void store_rows(int64_t layer, std::span<const Row> rows, const at::Tensor& keys,
                  const at::Tensor& values) const;
  at::Tensor logits(const at::Tensor& hidden) const;

  ModelConfig config_;
  ModelWeights weights_;
  at::ScalarType dtype_;
  at::Device device_;
  RotaryEmbedding rotary_;
  std::vector<RowLayer> row_layers_;
  RowLinear lm_head_;
};

}  // namespace kvlab
