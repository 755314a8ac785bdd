// A random model of a few megabytes with the default model's tokenizer: whole sweeps in a second.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>

namespace kvlab {

// Writes a Llama of two layers (hidden size 32, four heads on two KV heads, bfloat16, the same
// bytes each time) into `dir`, with copies of `tokenizer_dir`'s tokenizer and prompt format.
absl::Status make_tiny_model(const std::filesystem::path& tokenizer_dir,
                             const std::filesystem::path& dir, int64_t max_positions = 8192);

}  // namespace kvlab
