// The tensors of a Hugging Face model directory by name, whichever safetensors file holds them.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/safetensors.h"

namespace kvlab {

class WeightFiles final {
 public:
  struct Tensor {
    std::shared_ptr<const SafetensorsFile> file;
    const SafetensorsEntry* entry;  // into `file`

    std::span<const std::byte> bytes() const { return file->bytes(*entry); }
  };

  // model.safetensors.index.json with its shards, else model.safetensors. Errors: neither present,
  // a shard missing or naming a folder, a tensor that is not in the shard the index says.
  static absl::StatusOr<WeightFiles> open(const std::filesystem::path& model_dir);

  const Tensor* find(std::string_view name) const;  // null: absent
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace kvlab
