// The fields of config.json that the runtime uses, in both spellings Hugging Face has had.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvlab {

struct RopeScaling {
  std::string type;  // "default", "linear", "llama3", "yarn"
  double factor = 1;
  double low_freq_factor = 1;                    // llama3
  double high_freq_factor = 4;                   // llama3
  int64_t original_max_position_embeddings = 0;  // llama3, yarn
  double beta_fast = 32;                         // yarn
  double beta_slow = 1;                          // yarn
  double attention_factor = 0;                   // yarn; 0: derived from factor
};

struct ModelConfig {
  std::string model_type;  // "llama", "qwen2", "qwen3", "mistral"
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_positions = 0;
  double rms_norm_eps = 0;
  double rope_theta = 0;
  RopeScaling rope_scaling;
  bool tie_word_embeddings = false;
  bool attention_bias = false;    // q, k, v (qwen2)
  bool query_key_norm = false;    // qwen3
  int64_t sliding_window = 0;     // 0: none
  std::vector<int32_t> stop_ids;  // eos_token_id of generation_config.json, else of config.json
  std::string torch_dtype;        // as stored, for information
  std::string content_hash;       // SHA-256 of config.json

  // An unsupported model type or feature is an error that names it and lists what is supported.
  static absl::StatusOr<ModelConfig> load(const std::filesystem::path& model_dir);

  int64_t group_size() const { return num_heads / num_kv_heads; }
};

}  // namespace kvlab
