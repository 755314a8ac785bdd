// A random model of a few megabytes with the default model's tokenizer: whole sweeps in a second.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>

namespace kvlab {

struct TinyModelShape {
  int64_t hidden_size = 32;
  int64_t num_heads = 4;
  int64_t num_kv_heads = 2;
  int64_t max_positions = 8192;
};

// Writes a Llama of two layers (bfloat16, the same bytes each time) into `dir`, with copies of
// `tokenizer_dir`'s tokenizer and prompt format.
absl::Status make_tiny_model(const std::filesystem::path& tokenizer_dir,
                             const std::filesystem::path& dir, const TinyModelShape& shape = {});

}  // namespace kvlab
