#include "methods/lookahead_kv/training/frozen_pass.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <string>

#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/model/safetensors.h"
#include "harness/model/stored_tensors.h"
#include "methods/lookahead_kv/training/attention_target.h"

namespace kvlab {
namespace {

absl::Status write_pass(const std::filesystem::path& path, const FrozenPass& pass) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (size_t layer = 0; layer < pass.prompt.size(); ++layer) {
    tensors.emplace_back(fmt::format("{}.keys", layer), pass.prompt[layer].keys.contiguous());
    tensors.emplace_back(fmt::format("{}.values", layer), pass.prompt[layer].values.contiguous());
    tensors.emplace_back(fmt::format("{}.targets", layer), pass.targets[layer].contiguous());
  }
  std::vector<SafetensorsTensor> stored;
  stored.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    stored.push_back(stored_view(name, tensor));
  }
  return write_safetensors(path, stored, {});
}

absl::StatusOr<at::Tensor> mapped_tensor(const std::shared_ptr<const SafetensorsFile>& file,
                                         const std::string& name, int64_t prompt_len) {
  const auto it = file->header().tensors.find(name);
  if (it == file->header().tensors.end()) {
    return data_loss("{}: the tensor \"{}\" is missing", file->path().string(), name);
  }
  const SafetensorsEntry& entry = it->second;
  KVLAB_ASSIGN_OR_RETURN(const at::ScalarType type, scalar_type(entry.type));
  const size_t length_dim = name.ends_with("targets") ? 1 : entry.shape.size() - 2;
  if (entry.shape.size() < 2 || entry.shape[length_dim] != prompt_len) {
    return data_loss("{}: \"{}\" is not of this sample", file->path().string(), name);
  }
  // from_blob takes no pointer to const; nothing writes through it.
  return at::from_blob(
      const_cast<std::byte*>(file->bytes(entry).data()), entry.shape, [file](void*) {},
      at::TensorOptions().dtype(type));
}

absl::StatusOr<FrozenPass> read_pass(const std::filesystem::path& path, int64_t num_layers,
                                     int64_t prompt_len) {
  KVLAB_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::open(path));
  FrozenPass pass;
  for (int64_t layer = 0; layer < num_layers; ++layer) {
    PromptLayer prompt;
    KVLAB_ASSIGN_OR_RETURN(prompt.keys,
                           mapped_tensor(file, fmt::format("{}.keys", layer), prompt_len));
    KVLAB_ASSIGN_OR_RETURN(prompt.values,
                           mapped_tensor(file, fmt::format("{}.values", layer), prompt_len));
    KVLAB_ASSIGN_OR_RETURN(const at::Tensor targets,
                           mapped_tensor(file, fmt::format("{}.targets", layer), prompt_len));
    pass.prompt.push_back(std::move(prompt));
    pass.targets.push_back(targets);
  }
  return pass;
}

}  // namespace

absl::StatusOr<FrozenPass> run_frozen_pass(CausalLm& base, const TrainingSample& sample,
                                           at::ScalarType target_dtype) {
  const auto prompt_len = static_cast<int64_t>(sample.prompt_ids.size());
  const auto reply_len = static_cast<int64_t>(sample.reply_ids.size());
  std::vector<int32_t> ids = sample.prompt_ids;
  ids.insert(ids.end(), sample.reply_ids.begin(), sample.reply_ids.end());
  PrefillOptions options;
  options.needs.tail_queries = reply_len;
  KVLAB_ASSIGN_OR_RETURN(const std::shared_ptr<PromptState> state, base.prefill(ids, options));
  FrozenPass pass;
  for (const LayerState& layer : state->layers) {
    pass.prompt.push_back({.keys = layer.keys.narrow(1, 0, prompt_len),
                           .values = layer.values.narrow(1, 0, prompt_len)});
    pass.targets.push_back(attention_target(layer.tail_queries, pass.prompt.back().keys,
                                            layer.keys.narrow(1, prompt_len, reply_len),
                                            target_dtype));
  }
  return pass;
}

absl::StatusOr<FrozenPass> FrozenPasses::get(const TrainingSample& sample,
                                             at::ScalarType target_dtype) {
  if (keep_in_.empty()) {
    return run_frozen_pass(base_, sample, target_dtype);
  }
  const std::string name =
      sha256_hex(fmt::format("{} {} {} {}", model_fingerprint_, at::toString(target_dtype),
                             fmt::join(sample.prompt_ids, ","), fmt::join(sample.reply_ids, ",")));
  const std::filesystem::path path = keep_in_ / fmt::format("{}.safetensors", name.substr(0, 32));
  if (std::filesystem::exists(path)) {
    auto kept =
        read_pass(path, base_.config().num_layers, static_cast<int64_t>(sample.prompt_ids.size()));
    if (kept.ok()) {
      return kept;
    }
  }
  KVLAB_ASSIGN_OR_RETURN(FrozenPass pass, run_frozen_pass(base_, sample, target_dtype));
  KVLAB_RETURN_IF_ERROR(write_pass(path, pass));
  return pass;
}

}  // namespace kvlab
