#include "methods/lookahead_kv/adapter.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/base/json.h"
#include "harness/base/say.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/model/layer_ops.h"
#include "harness/model/safetensors.h"
#include "harness/model/stored_tensors.h"

namespace kvlab {
namespace {

constexpr std::string_view kFormatVersion = "1";

using Target = RowAdapter::Target;

struct TargetInfo {
  Target target;
  std::string_view name;
  std::string_view block;  // where the linear layer lives in a Hugging Face decoder layer
};
constexpr std::array<TargetInfo, 7> kTargets = {{
    {Target::kQ, "q_proj", "self_attn"},
    {Target::kK, "k_proj", "self_attn"},
    {Target::kV, "v_proj", "self_attn"},
    {Target::kO, "o_proj", "self_attn"},
    {Target::kGate, "gate_proj", "mlp"},
    {Target::kUp, "up_proj", "mlp"},
    {Target::kDown, "down_proj", "mlp"},
}};

const TargetInfo& info(Target target) { return kTargets[static_cast<size_t>(target)]; }

bool has_target(const ModelConfig& config, const LookaheadShape& shape, int64_t layer,
                Target target) {
  const bool last = layer + 1 == config.num_layers;
  const bool listed =
      std::find(shape.targets.begin(), shape.targets.end(), target) != shape.targets.end();
  return shape.rank > 0 && listed && (!last || target == Target::kQ || target == Target::kK);
}

std::string tensor_name(int64_t layer, Target target, std::string_view which) {
  return fmt::format("layers.{}.{}.{}.lora_{}", layer, info(target).block, info(target).name,
                     which);
}

template <typename Number>
absl::StatusOr<Number> metadata_number(const SafetensorsHeader& header, const std::string& key,
                                       const std::string& origin) {
  const auto it = header.metadata.find(key);
  if (it == header.metadata.end()) {
    return invalid_argument("{}: not a LookaheadKV adapter: the metadata has no number \"{}\"",
                            origin, key);
  }
  const std::string& text = it->second;
  const char* end = text.data() + text.size();
  Number value = 0;
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(static_cast<double>(value))) {
    return invalid_argument("{}: the metadata's \"{}\" is no number: \"{}\"", origin, key, text);
  }
  return value;
}

absl::StatusOr<at::Tensor> read_tensor(const SafetensorsFile& file, const std::string& name,
                                       const std::vector<int64_t>& shape,
                                       const LookaheadAdapter::LoadOptions& options) {
  const std::string origin = file.path().string();
  const auto it = file.header().tensors.find(name);
  if (it == file.header().tensors.end()) {
    return data_loss("{}: the tensor \"{}\" is missing", origin, name);
  }
  const SafetensorsEntry& entry = it->second;
  if (entry.shape != shape) {
    return data_loss("{}: \"{}\" has shape {}, this model needs {}", origin, name,
                     dump_json(entry.shape), dump_json(shape));
  }
  at::ScalarType type = at::kFloat;
  switch (entry.type) {
    case StoredType::kFloat32:
      break;
    case StoredType::kBFloat16:
      type = at::kBFloat16;
      break;
    case StoredType::kFloat64:
      type = at::kDouble;
      break;
    default:
      return data_loss("{}: \"{}\" is {}, expected F32, BF16 or F64", origin, name,
                       stored_type_name(entry.type));
  }
  const auto bytes = file.bytes(entry);
  at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(type));
  std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
  return tensor.to(options.dtype);
}

absl::Status check_base(const SafetensorsFile& file, const ModelConfig& config,
                        bool accept_unknown) {
  const auto& metadata = file.header().metadata;
  const auto hash = metadata.find("base_architecture_hash");
  const auto named = metadata.find("base_model");
  const std::string base = named != metadata.end() ? named->second : "a model it does not name";
  if (hash == metadata.end()) {
    if (accept_unknown) {
      say(stderr, "warning: {} does not say which model it was trained for; used all the same\n",
          file.path().string());
      return absl::OkStatus();
    }
    return failed_precondition(
        "{}: the adapter does not say which model it was trained for; to use it all the same, set "
        "accept_unknown_base=true",
        file.path().string());
  }
  const auto version = metadata.find("version");
  if (version != metadata.end() && version->second != kFormatVersion) {
    return failed_precondition("{}: an adapter of format version {}; this kvlab reads {}",
                               file.path().string(), version->second, kFormatVersion);
  }
  const std::string here = architecture_hash(config);
  if (hash->second != here) {
    return failed_precondition(
        "{}: trained for {} (architecture {}), not for this {} with {} layers of {} (architecture "
        "{})",
        file.path().string(), base, hash->second.substr(0, 12), config.model_type,
        config.num_layers, config.hidden_size, here.substr(0, 12));
  }
  return absl::OkStatus();
}

}  // namespace

LookaheadShape LookaheadShape::paper() {
  LookaheadShape shape;
  for (const TargetInfo& target : kTargets) {
    shape.targets.push_back(target.target);
  }
  return shape;
}

std::string_view target_name(RowAdapter::Target target) { return info(target).name; }

absl::StatusOr<std::vector<RowAdapter::Target>> parse_targets(std::string_view text) {
  std::vector<Target> targets;
  if (text == "none") {
    return targets;
  }
  if (text == "all" || text == "attention") {
    for (const TargetInfo& target : kTargets) {
      if (text == "all" || target.block == "self_attn") {
        targets.push_back(target.target);
      }
    }
    return targets;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const auto it = std::find_if(kTargets.begin(), kTargets.end(),
                                 [&](const TargetInfo& target) { return target.name == name; });
    if (it == kTargets.end()) {
      return invalid_argument(
          "no linear layer \"{}\"; known: q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, "
          "down_proj, or all, attention, none",
          name);
    }
    targets.push_back(it->target);
    begin = end + 1;
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

std::array<int64_t, 2> target_features(const ModelConfig& config, RowAdapter::Target target) {
  const int64_t hidden = config.hidden_size;
  const int64_t q_size = config.num_heads * config.head_dim;
  const int64_t kv_size = config.num_kv_heads * config.head_dim;
  switch (target) {
    case Target::kQ:
      return {q_size, hidden};
    case Target::kK:
    case Target::kV:
      return {kv_size, hidden};
    case Target::kO:
      return {hidden, q_size};
    case Target::kGate:
    case Target::kUp:
      return {config.intermediate_size, hidden};
    case Target::kDown:
      break;
  }
  return {hidden, config.intermediate_size};
}

int64_t num_trainable(const ModelConfig& config, const LookaheadShape& shape) {
  int64_t total = shape.num_tokens * config.hidden_size;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const TargetInfo& target : kTargets) {
      if (has_target(config, shape, layer, target.target)) {
        const auto [out_features, in_features] = target_features(config, target.target);
        total += shape.rank * (out_features + in_features);
      }
    }
  }
  return total;
}

std::string architecture_hash(const ModelConfig& config) {
  const RopeScaling& rope = config.rope_scaling;
  Json fields = {{"model_type", config.model_type},
                 {"hidden_size", config.hidden_size},
                 {"intermediate_size", config.intermediate_size},
                 {"num_layers", config.num_layers},
                 {"num_heads", config.num_heads},
                 {"num_kv_heads", config.num_kv_heads},
                 {"head_dim", config.head_dim},
                 {"vocab_size", config.vocab_size},
                 {"rms_norm_eps", config.rms_norm_eps},
                 {"rope_theta", config.rope_theta},
                 {"rope_type", rope.type},
                 {"rope_factor", rope.factor},
                 {"query_key_norm", config.query_key_norm},
                 {"attention_bias", config.attention_bias}};
  // Only where they matter: hashes of models without them stay what adapters have stored.
  if (config.sliding_window > 0) {
    fields["sliding_window"] = config.sliding_window;
  }
  if (rope.original_max_position_embeddings > 0) {
    fields["rope_of_positions"] = {rope.original_max_position_embeddings,
                                   rope.low_freq_factor,
                                   rope.high_freq_factor,
                                   rope.beta_fast,
                                   rope.beta_slow,
                                   rope.attention_factor};
  }
  return sha256_hex(dump_json(fields));
}

std::shared_ptr<LookaheadAdapter> LookaheadAdapter::initialise(const ModelConfig& config,
                                                               const LookaheadShape& shape,
                                                               const at::Tensor& embedding,
                                                               uint64_t seed) {
  auto adapter = std::make_shared<LookaheadAdapter>();
  adapter->shape_ = shape;
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const auto floats = at::TensorOptions().dtype(at::kFloat);
  if (embedding.defined()) {
    const at::Tensor rows = at::randint(embedding.size(0), {shape.num_tokens}, generator,
                                        at::TensorOptions().dtype(at::kLong));
    adapter->tokens_ = embedding.index_select(0, rows).to(at::kFloat).clone();
  } else {
    adapter->tokens_ =
        at::empty({shape.num_tokens, config.hidden_size}, floats).normal_(0, 0.02, generator);
  }
  adapter->layers_.resize(static_cast<size_t>(config.num_layers));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const TargetInfo& target : kTargets) {
      if (!has_target(config, shape, layer, target.target)) {
        continue;
      }
      const auto [out_features, in_features] = target_features(config, target.target);
      // Kaiming-uniform with a = sqrt(5), as LoRA's authors start A: bound 1 / sqrt(fan_in).
      const double bound = 1.0 / std::sqrt(static_cast<double>(in_features));
      LowRank& pair = adapter->layers_[layer][static_cast<size_t>(target.target)];
      pair.a = at::empty({shape.rank, in_features}, floats).uniform_(-bound, bound, generator);
      pair.b = at::zeros({out_features, shape.rank}, floats);
    }
  }
  return adapter;
}

absl::StatusOr<std::shared_ptr<LookaheadAdapter>> LookaheadAdapter::load(
    const std::filesystem::path& path, const ModelConfig& config, const LoadOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(const auto file, SafetensorsFile::open(path));
  const std::string origin = path.string();
  const SafetensorsHeader& header = file->header();
  KVLAB_RETURN_IF_ERROR(check_base(*file, config, options.accept_unknown_base));
  auto adapter = std::make_shared<LookaheadAdapter>();
  KVLAB_ASSIGN_OR_RETURN(adapter->shape_.num_tokens,
                         metadata_number<int64_t>(header, "num_lookahead_tokens", origin));
  KVLAB_ASSIGN_OR_RETURN(adapter->shape_.rank,
                         metadata_number<int64_t>(header, "lora_rank", origin));
  KVLAB_ASSIGN_OR_RETURN(adapter->shape_.alpha,
                         metadata_number<double>(header, "lora_alpha", origin));
  if (adapter->shape_.num_tokens < 1 || adapter->shape_.rank < 0) {
    return invalid_argument("{}: needs at least one lookahead token and a rank of at least 0",
                            origin);
  }
  const auto targets = header.metadata.find("targets");
  KVLAB_ASSIGN_OR_RETURN(adapter->shape_.targets,
                         parse_targets(targets == header.metadata.end() ? "all" : targets->second));
  KVLAB_ASSIGN_OR_RETURN(adapter->tokens_,
                         read_tensor(*file, "lookahead_tokens",
                                     {adapter->shape_.num_tokens, config.hidden_size}, options));
  adapter->layers_.resize(static_cast<size_t>(config.num_layers));
  size_t used = 1;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const TargetInfo& target : kTargets) {
      if (!has_target(config, adapter->shape_, layer, target.target)) {
        continue;
      }
      const auto [out_features, in_features] = target_features(config, target.target);
      LowRank& pair = adapter->layers_[layer][static_cast<size_t>(target.target)];
      KVLAB_ASSIGN_OR_RETURN(pair.a, read_tensor(*file, tensor_name(layer, target.target, "A"),
                                                 {adapter->shape_.rank, in_features}, options));
      KVLAB_ASSIGN_OR_RETURN(pair.b, read_tensor(*file, tensor_name(layer, target.target, "B"),
                                                 {out_features, adapter->shape_.rank}, options));
      used += 2;
    }
  }
  if (used != header.tensors.size()) {
    return data_loss("{}: {} tensors, but this model and the adapter's targets have {}", origin,
                     header.tensors.size(), used);
  }
  if (options.dtype == at::kFloat) {
    adapter->pack();
  }
  adapter->metadata_.insert(header.metadata.begin(), header.metadata.end());
  KVLAB_ASSIGN_OR_RETURN(adapter->content_hash_, sha256_file(path));
  return adapter;
}

absl::Status LookaheadAdapter::save(const std::filesystem::path& path, const ModelConfig& config,
                                    at::ScalarType dtype,
                                    const std::map<std::string, std::string>& metadata) const {
  std::map<std::string, std::string, std::less<>> all(metadata.begin(), metadata.end());
  std::string targets;
  for (const Target target : shape_.targets) {
    targets += fmt::format("{}{}", targets.empty() ? "" : ",", target_name(target));
  }
  all["format"] = "kvlab-lookahead-adapter";
  all["version"] = kFormatVersion;
  all["base_architecture_hash"] = architecture_hash(config);
  all["num_lookahead_tokens"] = fmt::format("{}", shape_.num_tokens);
  all["lora_rank"] = fmt::format("{}", shape_.rank);
  all["lora_alpha"] = fmt::format("{}", shape_.alpha);
  all["targets"] = targets.empty() ? "none" : targets;
  std::vector<at::Tensor> keep_alive;
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, tensor] : named_tensors()) {
    const at::Tensor stored = tensor.detach().to(at::kCPU, dtype).contiguous();
    keep_alive.push_back(stored);
    tensors.push_back(stored_view(name, stored));
  }
  return write_safetensors(path, tensors, all);
}

at::Tensor LookaheadAdapter::delta(int64_t layer, Target target, const at::Tensor& rows) const {
  LowRank pair = layers_[layer][static_cast<size_t>(target)];
  if (!pair.a.defined()) {
    return {};
  }
  if (pair.a.device() != rows.device()) {
    pair = on_device(layer, target, rows.device());
  }
  const double scale = shape_.alpha / static_cast<double>(shape_.rank);
  return at::mul(at::matmul(at::matmul(rows, pair.a.t()), pair.b.t()), scale);
}

LookaheadAdapter::LowRank LookaheadAdapter::on_device(int64_t layer, Target target,
                                                      at::Device device) const {
  const std::scoped_lock lock(moved_mutex_);
  if (moved_.empty() || moved_to_ != device) {
    moved_ = layers_;
    for (auto& pairs : moved_) {
      for (LowRank& pair : pairs) {
        if (pair.a.defined()) {
          pair = {.a = pair.a.to(device), .b = pair.b.to(device)};
        }
      }
    }
    moved_to_ = device;
  }
  return moved_[layer][static_cast<size_t>(target)];
}

void LookaheadAdapter::pack() {
  const auto scale = static_cast<float>(shape_.alpha / static_cast<double>(shape_.rank));
  packed_.resize(layers_.size());
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (size_t target = 0; target < kNumTargets; ++target) {
      const LowRank& pair = layers_[layer][target];
      if (pair.a.defined()) {
        packed_[layer][target] =
            LowRankUpdate::pack(pair.a.const_data_ptr<float>(), pair.b.const_data_ptr<float>(),
                                shape_.rank, pair.b.size(0), pair.a.size(1), scale);
      }
    }
  }
}

void LookaheadAdapter::add_delta(int64_t layer, Target target, const at::Tensor& rows,
                                 at::Tensor& out) const {
  const LowRank& pair = layers_[layer][static_cast<size_t>(target)];
  if (!pair.a.defined()) {
    return;
  }
  if (!packed_.empty() && use_cpu_kernels(rows) && use_cpu_kernels(out)) {
    packed_[layer][static_cast<size_t>(target)].add_to(
        element_type(rows.scalar_type()), rows.const_data_ptr(), rows.size(0), rows.stride(0),
        out.data_ptr(), out.stride(0));
    return;
  }
  // In the adapter's own precision, which may be above the rows'.
  const at::Tensor change = delta(layer, target, rows.to(pair.a.scalar_type()));
  out.add_(change.to(out.scalar_type()));
}

std::optional<RowUpdates> LookaheadAdapter::kernel_updates(int64_t layer) const {
  if (packed_.empty()) {
    return std::nullopt;
  }
  const auto of = [&](Target target) {
    const LowRankUpdate& update = packed_[layer][static_cast<size_t>(target)];
    return update.empty() ? nullptr : &update;
  };
  return RowUpdates{.q = of(Target::kQ),
                    .k = of(Target::kK),
                    .v = of(Target::kV),
                    .o = of(Target::kO),
                    .gate = of(Target::kGate),
                    .up = of(Target::kUp),
                    .down = of(Target::kDown)};
}

std::vector<std::pair<std::string, at::Tensor>> LookaheadAdapter::named_tensors() const {
  std::vector<std::pair<std::string, at::Tensor>> named = {{"lookahead_tokens", tokens_}};
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    for (const TargetInfo& target : kTargets) {
      const LowRank& pair = layers_[layer][static_cast<size_t>(target.target)];
      if (pair.a.defined()) {
        const auto l = static_cast<int64_t>(layer);
        named.emplace_back(tensor_name(l, target.target, "A"), pair.a);
        named.emplace_back(tensor_name(l, target.target, "B"), pair.b);
      }
    }
  }
  return named;
}

void LookaheadAdapter::require_gradients() {
  packed_.clear();  // they would not follow the tensors
  moved_.clear();
  for (auto& [name, tensor] : named_tensors()) {
    tensor.requires_grad_(true);
  }
}

}  // namespace kvlab
