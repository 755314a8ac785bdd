#include "harness/model/model_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <system_error>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr std::array<std::string_view, 4> kModelTypes = {"llama", "qwen2", "qwen3", "mistral"};
constexpr double kDefaultRopeTheta = 10000;      // transformers' where a config has none
constexpr int64_t kMistralDefaultWindow = 4096;  // the same, for an absent (not null) key
constexpr int64_t kQwen3DefaultHeadDim = 128;    // the same

absl::StatusOr<int64_t> positive(const Json& config, const std::string& key,
                                 std::string_view origin) {
  KVLAB_ASSIGN_OR_RETURN(const auto value, json_get<int64_t>(config, key, origin));
  if (value <= 0 || value > std::numeric_limits<int32_t>::max()) {
    return invalid_argument("{}: \"{}\" is {}, expected a positive 32-bit number", origin, key,
                            value);
  }
  return value;
}

absl::StatusOr<int64_t> positive_or(const Json& config, const std::string& key, int64_t fallback,
                                    std::string_view origin) {
  if (!config.contains(key) || config.at(key).is_null()) {
    return fallback;
  }
  return positive(config, key, origin);
}

// A number or a list of numbers; absent or null: none.
absl::StatusOr<std::vector<int32_t>> token_ids(const Json& config, const std::string& key,
                                               int64_t vocab_size, std::string_view origin) {
  std::vector<int32_t> ids;
  if (!config.contains(key) || config.at(key).is_null()) {
    return ids;
  }
  const Json& value = config.at(key);
  const Json list = value.is_array() ? value : Json::array({value});
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocab_size) {
      return invalid_argument("{}: \"{}\" holds {}, expected token ids below {}", origin, key,
                              dump_json(id), vocab_size);
    }
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

absl::Status unsupported(std::string_view origin, std::string_view what,
                         std::string_view supported) {
  return unimplemented("{}: {} is not supported (supported: {})", origin, what, supported);
}

absl::StatusOr<RopeScaling> rope_scaling(const Json& rope, int64_t max_positions,
                                         std::string_view origin) {
  RopeScaling scaling;
  scaling.type = "default";
  if (rope.is_null()) {
    return scaling;
  }
  if (!rope.is_object()) {
    return invalid_argument("{}: the rope parameters are {}, expected an object", origin,
                            rope.type_name());
  }
  for (const auto& [key, value] : rope.items()) {
    if (value.is_object()) {
      return unsupported(origin, fmt::format("rope parameters per layer type ('{}')", key),
                         "one set for all layers");
    }
  }
  KVLAB_ASSIGN_OR_RETURN(const auto old_type,
                         json_get_or<std::string>(rope, "type", "default", origin));
  KVLAB_ASSIGN_OR_RETURN(scaling.type,
                         json_get_or<std::string>(rope, "rope_type", old_type, origin));
  KVLAB_ASSIGN_OR_RETURN(const auto partial,
                         json_get_or<double>(rope, "partial_rotary_factor", 1.0, origin));
  if (partial != 1.0) {
    return unsupported(origin, "partial_rotary_factor", "1");
  }
  const std::string& type = scaling.type;
  if (type == "default") {
    return scaling;
  }
  if (type != "linear" && type != "llama3" && type != "yarn") {
    return unsupported(origin, fmt::format("rope scaling of type '{}'", type),
                       "default, linear, llama3, yarn");
  }
  KVLAB_ASSIGN_OR_RETURN(scaling.factor, json_get<double>(rope, "factor", origin));
  if (!(scaling.factor >= 1)) {
    return invalid_argument("{}: the rope scaling \"factor\" is {}, expected 1 or more", origin,
                            scaling.factor);
  }
  if (type == "linear") {
    return scaling;
  }
  KVLAB_ASSIGN_OR_RETURN(
      scaling.original_max_position_embeddings,
      positive_or(rope, "original_max_position_embeddings", max_positions, origin));
  if (type == "llama3") {
    KVLAB_ASSIGN_OR_RETURN(scaling.low_freq_factor,
                           json_get<double>(rope, "low_freq_factor", origin));
    KVLAB_ASSIGN_OR_RETURN(scaling.high_freq_factor,
                           json_get<double>(rope, "high_freq_factor", origin));
    if (!(scaling.low_freq_factor > 0 && scaling.high_freq_factor > scaling.low_freq_factor)) {
      return invalid_argument(
          "{}: rope scaling needs 0 < low_freq_factor < high_freq_factor, got {} and {}", origin,
          scaling.low_freq_factor, scaling.high_freq_factor);
    }
    return scaling;
  }
  for (const char* key : {"mscale", "mscale_all_dim", "truncate"}) {
    if (rope.contains(key) && !rope.at(key).is_null() && rope.at(key) != Json(true)) {
      return unsupported(origin, fmt::format("the yarn option '{}'", key),
                         "factor, attention_factor, beta_fast, beta_slow, "
                         "original_max_position_embeddings");
    }
  }
  KVLAB_ASSIGN_OR_RETURN(scaling.beta_fast, json_get_or<double>(rope, "beta_fast", 32, origin));
  KVLAB_ASSIGN_OR_RETURN(scaling.beta_slow, json_get_or<double>(rope, "beta_slow", 1, origin));
  KVLAB_ASSIGN_OR_RETURN(scaling.attention_factor,
                         json_get_or<double>(rope, "attention_factor", 0, origin));
  if (!(scaling.beta_slow > 0 && scaling.beta_fast > 0 && scaling.attention_factor >= 0)) {
    return invalid_argument(
        "{}: yarn needs positive beta_fast and beta_slow and an attention_factor of 0 or more",
        origin);
  }
  return scaling;
}

absl::Status refuse_unsupported(const Json& config, std::string_view origin) {
  if (config.contains("quantization_config") && !config.at("quantization_config").is_null()) {
    return unsupported(origin, "a quantised model (quantization_config)",
                       "float32, float16 and bfloat16 weights");
  }
  KVLAB_ASSIGN_OR_RETURN(const auto act,
                         json_get_or<std::string>(config, "hidden_act", "silu", origin));
  if (act != "silu") {
    return unsupported(origin, fmt::format("hidden_act '{}'", act), "silu");
  }
  for (const char* key : {"attention_bias", "mlp_bias", "rope_interleaved", "use_sliding_window"}) {
    KVLAB_ASSIGN_OR_RETURN(const auto on, json_get_or<bool>(config, key, false, origin));
    if (on) {
      return unsupported(origin, fmt::format("{} = true", key), "false");
    }
  }
  KVLAB_ASSIGN_OR_RETURN(const auto partial,
                         json_get_or<double>(config, "partial_rotary_factor", 1.0, origin));
  if (partial != 1.0) {
    return unsupported(origin, "partial_rotary_factor", "1");
  }
  if (config.contains("layer_types") && config.at("layer_types").is_array()) {
    for (const Json& type : config.at("layer_types")) {
      if (type != Json("full_attention")) {
        return unsupported(origin, fmt::format("a layer of type {}", dump_json(type)),
                           "full_attention");
      }
    }
  }
  return absl::OkStatus();
}

// Mistral only: a window where the key is set, none where it is null.
absl::StatusOr<int64_t> load_sliding_window(const Json& config, std::string_view origin) {
  if (config.contains("sliding_window") && config.at("sliding_window").is_null()) {
    return 0;
  }
  return positive_or(config, "sliding_window", kMistralDefaultWindow, origin);
}

absl::Status load_rope(const Json& config, std::string_view origin, ModelConfig& out) {
  // transformers 5 writes `rope_parameters`, with rope_theta inside; older ones `rope_scaling`.
  Json rope;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (config.contains(key) && !config.at(key).is_null()) {
      rope = config.at(key);
    }
  }
  KVLAB_ASSIGN_OR_RETURN(out.rope_scaling, rope_scaling(rope, out.max_positions, origin));
  KVLAB_ASSIGN_OR_RETURN(out.rope_theta,
                         json_get_or<double>(config, "rope_theta", kDefaultRopeTheta, origin));
  KVLAB_ASSIGN_OR_RETURN(out.rope_theta,
                         json_get_or<double>(rope, "rope_theta", out.rope_theta, origin));
  if (!(out.rope_theta > 1)) {
    return invalid_argument("{}: \"rope_theta\" is {}, expected more than 1", origin,
                            out.rope_theta);
  }
  return absl::OkStatus();
}

absl::Status load_shapes(const Json& config, std::string_view origin, ModelConfig& out) {
  KVLAB_ASSIGN_OR_RETURN(out.hidden_size, positive(config, "hidden_size", origin));
  KVLAB_ASSIGN_OR_RETURN(out.intermediate_size, positive(config, "intermediate_size", origin));
  KVLAB_ASSIGN_OR_RETURN(out.num_layers, positive(config, "num_hidden_layers", origin));
  KVLAB_ASSIGN_OR_RETURN(out.num_heads, positive(config, "num_attention_heads", origin));
  KVLAB_ASSIGN_OR_RETURN(out.num_kv_heads,
                         positive_or(config, "num_key_value_heads", out.num_heads, origin));
  KVLAB_ASSIGN_OR_RETURN(out.vocab_size, positive(config, "vocab_size", origin));
  KVLAB_ASSIGN_OR_RETURN(out.max_positions, positive(config, "max_position_embeddings", origin));
  KVLAB_ASSIGN_OR_RETURN(out.rms_norm_eps, json_get<double>(config, "rms_norm_eps", origin));
  const int64_t default_head_dim =
      out.model_type == "qwen3" ? kQwen3DefaultHeadDim : out.hidden_size / out.num_heads;
  KVLAB_ASSIGN_OR_RETURN(out.head_dim, positive_or(config, "head_dim", default_head_dim, origin));
  if (out.num_heads % out.num_kv_heads != 0) {
    return invalid_argument(
        "{}: num_attention_heads ({}) is not a multiple of num_key_value_heads ({})", origin,
        out.num_heads, out.num_kv_heads);
  }
  if (out.head_dim % 2 != 0 || out.head_dim == 0) {
    return invalid_argument("{}: the head size is {}, expected an even number", origin,
                            out.head_dim);
  }
  if (!(out.rms_norm_eps > 0)) {
    return invalid_argument("{}: \"rms_norm_eps\" is {}, expected a positive number", origin,
                            out.rms_norm_eps);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ModelConfig::load(const std::filesystem::path& model_dir) {
  const auto path = model_dir / "config.json";
  const std::string origin = path.string();
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  KVLAB_ASSIGN_OR_RETURN(const Json config, parse_json(text, origin));
  ModelConfig out;
  out.content_hash = sha256_hex(text);
  KVLAB_ASSIGN_OR_RETURN(out.model_type, json_get<std::string>(config, "model_type", origin));
  if (std::find(kModelTypes.begin(), kModelTypes.end(), out.model_type) == kModelTypes.end()) {
    return unsupported(origin, fmt::format("model type '{}'", out.model_type),
                       "llama, qwen2, qwen3, mistral");
  }
  KVLAB_RETURN_IF_ERROR(refuse_unsupported(config, origin));
  KVLAB_RETURN_IF_ERROR(load_shapes(config, origin, out));
  KVLAB_RETURN_IF_ERROR(load_rope(config, origin, out));
  KVLAB_ASSIGN_OR_RETURN(out.tie_word_embeddings,
                         json_get_or<bool>(config, "tie_word_embeddings", false, origin));
  out.attention_bias = out.model_type == "qwen2";
  out.query_key_norm = out.model_type == "qwen3";
  if (out.model_type == "mistral") {
    KVLAB_ASSIGN_OR_RETURN(out.sliding_window, load_sliding_window(config, origin));
  }
  KVLAB_ASSIGN_OR_RETURN(out.torch_dtype,
                         json_get_or<std::string>(config, "torch_dtype", "", origin));
  KVLAB_ASSIGN_OR_RETURN(out.torch_dtype,
                         json_get_or<std::string>(config, "dtype", out.torch_dtype, origin));
  KVLAB_ASSIGN_OR_RETURN(out.stop_ids, token_ids(config, "eos_token_id", out.vocab_size, origin));
  const auto generation_path = model_dir / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(generation_path, ignored)) {
    KVLAB_ASSIGN_OR_RETURN(const Json generation, read_json_file(generation_path));
    KVLAB_ASSIGN_OR_RETURN(const auto ids, token_ids(generation, "eos_token_id", out.vocab_size,
                                                     generation_path.string()));
    if (!ids.empty()) {
      out.stop_ids = ids;
    }
  }
  return out;
}

}  // namespace kvlab
