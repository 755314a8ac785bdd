#include "harness/model/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <utility>

#include "harness/base/status.h"
#include "harness/model/stored_tensors.h"
#include "harness/model/weight_files.h"

namespace kvlab {
namespace {

constexpr std::string_view kLayerPrefix = "model.layers.";

class Loader final {
 public:
  Loader(const WeightFiles& files, const ModelConfig& config, std::string origin,
         at::ScalarType dtype, at::Device device)
      : files_(files),
        config_(config),
        origin_(std::move(origin)),
        dtype_(dtype),
        device_(device) {}

  absl::StatusOr<at::Tensor> get(const std::string& name, const std::vector<int64_t>& shape) {
    used_.insert(name);
    const WeightFiles::Tensor* stored = files_.find(name);
    if (stored == nullptr) {
      return not_found("{}: the tensor '{}' is missing", origin_, name);
    }
    if (stored->entry->shape != shape) {
      return data_loss("{}: the tensor '{}' has shape [{}], the config asks for [{}]", origin_,
                       name, fmt::join(stored->entry->shape, ", "), fmt::join(shape, ", "));
    }
    const auto type = scalar_type(stored->entry->type);
    if (!type.ok()) {
      return with_context(type.status(), fmt::format("{}: the tensor '{}'", origin_, name));
    }
    void* data = const_cast<std::byte*>(stored->bytes().data());
    const at::Tensor mapped = at::from_blob(
        data, shape, [file = stored->file](void*) {}, at::TensorOptions().dtype(*type));
    if (reinterpret_cast<uintptr_t>(data) % at::elementSize(*type) != 0) {
      // Only a file that breaks the format's padding rule; bytes may be copied from anywhere.
      at::Tensor aligned = at::empty(shape, at::TensorOptions().dtype(*type));
      std::copy_n(static_cast<const std::byte*>(data), stored->bytes().size(),
                  static_cast<std::byte*>(aligned.data_ptr()));
      return aligned.to(device_, dtype_);
    }
    return mapped.to(device_, dtype_);
  }

  absl::Status load_layer(int64_t index, LayerWeights& out) {
    const std::string prefix = fmt::format("{}{}.", kLayerPrefix, index);
    const std::string attention = prefix + "self_attn.";
    const int64_t hidden = config_.hidden_size;
    const int64_t q_size = config_.num_heads * config_.head_dim;
    const int64_t kv_size = config_.num_kv_heads * config_.head_dim;
    const int64_t inner = config_.intermediate_size;
    KVLAB_ASSIGN_OR_RETURN(out.attention_norm, get(prefix + "input_layernorm.weight", {hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.q, get(attention + "q_proj.weight", {q_size, hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.k, get(attention + "k_proj.weight", {kv_size, hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.v, get(attention + "v_proj.weight", {kv_size, hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.o, get(attention + "o_proj.weight", {hidden, q_size}));
    if (config_.attention_bias) {
      KVLAB_ASSIGN_OR_RETURN(out.q_bias, get(attention + "q_proj.bias", {q_size}));
      KVLAB_ASSIGN_OR_RETURN(out.k_bias, get(attention + "k_proj.bias", {kv_size}));
      KVLAB_ASSIGN_OR_RETURN(out.v_bias, get(attention + "v_proj.bias", {kv_size}));
    }
    if (config_.query_key_norm) {
      KVLAB_ASSIGN_OR_RETURN(out.q_norm, get(attention + "q_norm.weight", {config_.head_dim}));
      KVLAB_ASSIGN_OR_RETURN(out.k_norm, get(attention + "k_norm.weight", {config_.head_dim}));
    }
    KVLAB_ASSIGN_OR_RETURN(out.mlp_norm, get(prefix + "post_attention_layernorm.weight", {hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.gate, get(prefix + "mlp.gate_proj.weight", {inner, hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.up, get(prefix + "mlp.up_proj.weight", {inner, hidden}));
    KVLAB_ASSIGN_OR_RETURN(out.down, get(prefix + "mlp.down_proj.weight", {hidden, inner}));
    return absl::OkStatus();
  }

  // A tensor nobody asked for would be a feature of the model left out in silence.
  absl::Status check_all_used() const {
    for (const auto& [name, tensor] : files_.tensors()) {
      const bool harmless = name.ends_with("rotary_emb.inv_freq") ||
                            (name == "lm_head.weight" && config_.tie_word_embeddings) ||
                            layer_index(name) >= config_.num_layers;
      if (!harmless && !used_.contains(name)) {
        return unimplemented("{}: the tensor '{}' has no place in a {} model", origin_, name,
                             config_.model_type);
      }
    }
    return absl::OkStatus();
  }

 private:
  static int64_t layer_index(std::string_view name) {
    int64_t index = -1;
    if (name.starts_with(kLayerPrefix)) {
      name.remove_prefix(kLayerPrefix.size());
      std::from_chars(name.data(), name.data() + name.size(), index);
    }
    return index;
  }

  const WeightFiles& files_;
  const ModelConfig& config_;
  std::string origin_;
  at::ScalarType dtype_;
  at::Device device_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

absl::StatusOr<ModelWeights> load_weights(const std::filesystem::path& model_dir,
                                          const ModelConfig& config, at::ScalarType dtype,
                                          at::Device device) {
  KVLAB_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::open(model_dir));
  Loader loader(files, config, model_dir.string(), dtype, device);
  ModelWeights weights;
  KVLAB_ASSIGN_OR_RETURN(weights.embedding, loader.get("model.embed_tokens.weight",
                                                       {config.vocab_size, config.hidden_size}));
  weights.layers.resize(static_cast<size_t>(config.num_layers));
  for (int64_t i = 0; i < config.num_layers; ++i) {
    KVLAB_RETURN_IF_ERROR(loader.load_layer(i, weights.layers[static_cast<size_t>(i)]));
  }
  KVLAB_ASSIGN_OR_RETURN(weights.final_norm, loader.get("model.norm.weight", {config.hidden_size}));
  weights.lm_head = weights.embedding;
  if (!config.tie_word_embeddings) {
    KVLAB_ASSIGN_OR_RETURN(weights.lm_head,
                           loader.get("lm_head.weight", {config.vocab_size, config.hidden_size}));
  }
  KVLAB_RETURN_IF_ERROR(loader.check_all_used());
  return weights;
}

}  // namespace kvlab
