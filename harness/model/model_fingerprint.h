// A cheap identity of a model's weights for result keys.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>

namespace kvlab {

// SHA-256 over the names, sizes and first and last 64 KiB of every *.safetensors file in
// `model_dir`: tensor layouts and some of the weights of every file, without reading gigabytes.
absl::StatusOr<std::string> weights_fingerprint(const std::filesystem::path& model_dir);

}  // namespace kvlab
