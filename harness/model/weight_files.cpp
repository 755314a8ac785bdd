#include "harness/model/weight_files.h"

#include <system_error>
#include <utility>

#include "harness/base/json.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

}  // namespace

absl::StatusOr<WeightFiles> WeightFiles::open(const std::filesystem::path& model_dir) {
  std::error_code ignored;
  const auto index_path = model_dir / "model.safetensors.index.json";
  const auto single_path = model_dir / "model.safetensors";
  WeightFiles weights;
  if (!std::filesystem::exists(index_path, ignored)) {
    if (!std::filesystem::exists(single_path, ignored)) {
      return not_found("{}: no weights: neither model.safetensors nor model.safetensors.index.json",
                       model_dir.string());
    }
    KVLAB_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::open(single_path));
    for (const auto& [name, entry] : file->header().tensors) {
      weights.tensors_.emplace(name, Tensor{file, &entry});
    }
    return weights;
  }
  KVLAB_ASSIGN_OR_RETURN(const Json index, read_json_file(index_path));
  KVLAB_ASSIGN_OR_RETURN(const Json weight_map,
                         json_get<Json>(index, "weight_map", index_path.string()));
  if (!weight_map.is_object()) {
    return data_loss("{}: 'weight_map' is not an object", index_path.string());
  }
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> shards;
  for (const auto& [name, shard_name] : weight_map.items()) {
    if (!shard_name.is_string() || !is_plain_file_name(shard_name.get<std::string>())) {
      return data_loss("{}: the shard of '{}' is not a file name", index_path.string(), name);
    }
    auto& shard = shards[shard_name.get<std::string>()];
    if (shard == nullptr) {
      KVLAB_ASSIGN_OR_RETURN(shard,
                             SafetensorsFile::open(model_dir / shard_name.get<std::string>()));
    }
    const auto entry = shard->header().tensors.find(name);
    if (entry == shard->header().tensors.end()) {
      return data_loss("{}: tensor '{}' is not in {}, where the index says it is",
                       index_path.string(), name, shard->path().string());
    }
    weights.tensors_.emplace(name, Tensor{shard, &entry->second});
  }
  return weights;
}

const WeightFiles::Tensor* WeightFiles::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

}  // namespace kvlab
