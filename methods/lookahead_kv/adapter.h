// LookaheadKV's trained part: the lookahead tokens and the low-rank updates of the decoder's
// linear layers (arXiv 2603.10899), kept in one safetensors file.
//
// Tensors: "lookahead_tokens" [num_tokens, hidden_size], and for every layer and target
// "layers.L.self_attn.q_proj.lora_A" [rank, in_features] and "....lora_B" [out_features, rank].
// The last layer has q and k only: nothing else of it can change a score.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "harness/kernels/low_rank_update.h"
#include "harness/model/causal_lm.h"
#include "harness/model/model_config.h"

namespace kvlab {

struct LookaheadShape {
  int64_t num_tokens = 32;
  int64_t rank = 8;  // 0: no low-rank updates, tokens only
  double alpha = 32;
  std::vector<RowAdapter::Target> targets;  // default: all seven

  static LookaheadShape paper();
};

// "q_proj", ... as files and recipes spell them.
std::string_view target_name(RowAdapter::Target target);
// Comma-separated names; "all", "attention" (q, k, v, o) and "none" are understood.
absl::StatusOr<std::vector<RowAdapter::Target>> parse_targets(std::string_view text);

// [out_features, in_features] of a target's linear layer.
std::array<int64_t, 2> target_features(const ModelConfig& config, RowAdapter::Target target);

// Trainable numbers of an adapter for this model. With the paper's shape this gives its Table 1.
int64_t num_trainable(const ModelConfig& config, const LookaheadShape& shape);

// SHA-256 over the fields of the config that decide what the model computes.
std::string architecture_hash(const ModelConfig& config);

class LookaheadAdapter final : public RowAdapter {
 public:
  struct LowRank {
    at::Tensor a;  // [rank, in_features]
    at::Tensor b;  // [out_features, rank]
  };

  // Tokens copied from `embedding` rows of random vocabulary entries, or with `embedding`
  // undefined normal with deviation 0.02; A Kaiming-uniform, B zero, float32. Seeded.
  static std::shared_ptr<LookaheadAdapter> initialise(const ModelConfig& config,
                                                      const LookaheadShape& shape,
                                                      const at::Tensor& embedding, uint64_t seed);

  struct LoadOptions {
    at::ScalarType dtype = at::kFloat;
    bool accept_unknown_base = false;  // a file without a base model's hash; a warning says so
  };
  // Tensors are on the CPU; add_delta() follows its rows to their device. Errors: not an adapter,
  // made for another model (both are named), wrong shapes.
  static absl::StatusOr<std::shared_ptr<LookaheadAdapter>> load(const std::filesystem::path& path,
                                                                const ModelConfig& config,
                                                                const LoadOptions& options);

  // Writes tensors as `dtype` with `metadata` beside the shape's own keys.
  absl::Status save(const std::filesystem::path& path, const ModelConfig& config,
                    at::ScalarType dtype, const std::map<std::string, std::string>& metadata) const;

  void add_delta(int64_t layer, Target target, const at::Tensor& rows,
                 at::Tensor& out) const override;
  std::optional<RowUpdates> kernel_updates(int64_t layer) const override;
  // The delta alone, differentiable; undefined where the target has none.
  at::Tensor delta(int64_t layer, Target target, const at::Tensor& rows) const;

  const at::Tensor& tokens() const { return tokens_; }
  const LookaheadShape& shape() const { return shape_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& content_hash() const { return content_hash_; }

  // Every trainable tensor by its file name, in a fixed order.
  std::vector<std::pair<std::string, at::Tensor>> named_tensors() const;
  // Turns gradients on for all of them.
  void require_gradients();

 private:
  static constexpr size_t kNumTargets = 7;
  void pack();
  // The pair there; all pairs are moved together and kept.
  LowRank on_device(int64_t layer, Target target, at::Device device) const;

  LookaheadShape shape_;
  at::Tensor tokens_;
  std::vector<std::array<LowRank, kNumTargets>> layers_;
  // The same for the CPU's kernel, of loaded adapters there.
  std::vector<std::array<LowRankUpdate, kNumTargets>> packed_;
  // The same for rows on another device.
  mutable std::mutex moved_mutex_;
  mutable std::vector<std::array<LowRank, kNumTargets>> moved_;
  mutable at::Device moved_to_ = at::kCPU;
  std::map<std::string, std::string> metadata_;
  std::string content_hash_;
};

}  // namespace kvlab
