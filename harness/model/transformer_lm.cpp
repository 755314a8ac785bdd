#include "harness/model/transformer_lm.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "harness/base/status.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/model/attention_cuda_at.h"
#include "harness/model/random_weights.h"
#include "harness/model/threads.h"

namespace kvlab {

absl::StatusOr<std::shared_ptr<CausalLm>> CausalLm::load(const std::filesystem::path& model_dir,
                                                         const LoadOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(std::shared_ptr<TransformerLm> model,
                         TransformerLm::load(model_dir, options));
  return std::shared_ptr<CausalLm>(std::move(model));
}

absl::StatusOr<std::shared_ptr<CausalLm>> CausalLm::random(const ModelConfig& config,
                                                           const LoadOptions& options,
                                                           uint64_t seed) {
  KVLAB_ASSIGN_OR_RETURN(std::shared_ptr<TransformerLm> model,
                         TransformerLm::random(config, options, seed));
  return std::shared_ptr<CausalLm>(std::move(model));
}

namespace {

absl::Status check_options(const LoadOptions& options) {
  if (options.dtype != at::kFloat && options.dtype != at::kBFloat16) {
    return invalid_argument("models run in float32 or bfloat16, not in {}",
                            at::toString(options.dtype));
  }
  if (options.device.is_cuda() && !at::hasCUDA()) {
    return failed_precondition(
        "this build or machine has no CUDA device; use the device cpu, or build with KVLAB_CUDA=ON "
        "on a machine with a GPU");
  }
  return absl::OkStatus();
}

absl::Status prepare_device(const ModelConfig& config, at::Device device) {
  if constexpr (kCudaKernels) {
    if (device.is_cuda()) {
      return prepare_cuda_attention(config.num_heads, config.num_kv_heads, config.head_dim);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<TransformerLm>> TransformerLm::random(const ModelConfig& config,
                                                                     const LoadOptions& options,
                                                                     uint64_t seed) {
  KVLAB_RETURN_IF_ERROR(check_options(options));
  KVLAB_RETURN_IF_ERROR(prepare_device(config, options.device));
  ModelConfig shape = config;
  if (options.num_layers > 0) {
    shape.num_layers = std::min(shape.num_layers, options.num_layers);
  }
  align_compute_threads();
  const c10::InferenceMode inference;
  try {
    ModelWeights weights = random_weights(shape, options.dtype, options.device, seed);
    return std::shared_ptr<TransformerLm>(
        new TransformerLm(std::move(shape), std::move(weights), options.dtype, options.device));
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        to_absl(fmt::format("random weights could not be made: {}", error.what())));
  }
}

absl::StatusOr<std::shared_ptr<TransformerLm>> TransformerLm::load(
    const std::filesystem::path& model_dir, const LoadOptions& options) {
  KVLAB_RETURN_IF_ERROR(check_options(options));
  KVLAB_ASSIGN_OR_RETURN(ModelConfig config, ModelConfig::load(model_dir));
  if (options.num_layers < 0 || options.num_layers > config.num_layers) {
    return invalid_argument("{}: the first {} layers were asked for, the model has {}",
                            model_dir.string(), options.num_layers, config.num_layers);
  }
  if (options.num_layers > 0) {
    config.num_layers = options.num_layers;
  }
  KVLAB_RETURN_IF_ERROR(with_context(prepare_device(config, options.device), model_dir.string()));
  align_compute_threads();
  const c10::InferenceMode inference;
  try {
    KVLAB_ASSIGN_OR_RETURN(ModelWeights weights,
                           load_weights(model_dir, config, options.dtype, options.device));
    return std::shared_ptr<TransformerLm>(
        new TransformerLm(std::move(config), std::move(weights), options.dtype, options.device));
  } catch (const std::exception& error) {
    return failed_precondition("{}: the model could not be loaded: {}", model_dir.string(),
                               error.what());
  }
}

TransformerLm::TransformerLm(ModelConfig config, ModelWeights weights, at::ScalarType dtype,
                             at::Device device)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      dtype_(dtype),
      device_(device),
      rotary_(config_, device) {
  for (const LayerWeights& layer : weights_.layers) {
    row_layers_.push_back(
        {RowLinear({layer.q, layer.k, layer.v}, {layer.q_bias, layer.k_bias, layer.v_bias}),
         RowLinear({layer.o}, {}), RowLinear({layer.gate, layer.up}, {}),
         RowLinear({layer.down}, {})});
  }
  lm_head_ = RowLinear({weights_.lm_head}, {});
}

double TransformerLm::attention_scale() const {
  return 1.0 / std::sqrt(static_cast<double>(config_.head_dim));
}

absl::Status TransformerLm::check_token_ids(std::span<const int32_t> token_ids,
                                            std::string_view what) const {
  if (token_ids.empty()) {
    return invalid_argument("{} is empty: at least one token is needed", what);
  }
  for (size_t i = 0; i < token_ids.size(); ++i) {
    if (token_ids[i] < 0 || token_ids[i] >= config_.vocab_size) {
      return invalid_argument("{}: token {} has id {}, the vocabulary ends at {}", what, i,
                              token_ids[i], config_.vocab_size - 1);
    }
  }
  return absl::OkStatus();
}

absl::Status TransformerLm::check_positions(int64_t past_last, std::string_view what) const {
  if (past_last > config_.max_positions) {
    return invalid_argument("{} needs {} positions, the model has {}", what, past_last,
                            config_.max_positions);
  }
  return absl::OkStatus();
}

at::Tensor TransformerLm::embed(std::span<const int32_t> token_ids) const {
  at::Tensor ids = at::empty({static_cast<int64_t>(token_ids.size())}, at::kInt);
  std::copy(token_ids.begin(), token_ids.end(), ids.data_ptr<int32_t>());
  return at::index_select(weights_.embedding, 0, ids.to(device_));
}

}  // namespace kvlab
