#include "tests/support/tiny_model.h"

#include <bit>
#include <random>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "harness/model/safetensors.h"

namespace kvlab {
namespace {

constexpr int64_t kHidden = 32, kIntermediate = 64, kHeads = 4, kKvHeads = 2, kLayers = 2;

class TensorList final {
 public:
  void add(const std::string& name, std::vector<int64_t> shape, float mean, float deviation) {
    int64_t count = 1;
    for (const int64_t size : shape) {
      count *= size;
    }
    std::vector<uint16_t> values(static_cast<size_t>(count));
    for (uint16_t& value : values) {
      // Sum of two uniform numbers: the same bits with every standard library.
      const double uniform = (static_cast<double>(random_()) + static_cast<double>(random_())) /
                             static_cast<double>(std::mt19937::max());
      const float number = mean + deviation * 2.4F * static_cast<float>(uniform - 1);
      value = static_cast<uint16_t>(std::bit_cast<uint32_t>(number) >> 16);
    }
    values_.push_back(std::move(values));
    tensors_.push_back({.name = name,
                        .type = StoredType::kBFloat16,
                        .shape = std::move(shape),
                        .data = std::as_bytes(std::span(values_.back()))});
  }
  const std::vector<SafetensorsTensor>& tensors() const { return tensors_; }

 private:
  std::mt19937 random_{7};
  std::vector<std::vector<uint16_t>> values_;  // moved vectors keep their data where it is
  std::vector<SafetensorsTensor> tensors_;
};

}  // namespace

absl::Status make_tiny_model(const std::filesystem::path& tokenizer_dir,
                             const std::filesystem::path& dir, int64_t max_positions) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "prompt_format.json",
                           "generation_config.json"}) {
    if (!std::filesystem::copy_file(tokenizer_dir / name, dir / name, error)) {
      return failed_precondition("{}: cannot copy {}", dir.string(), name);
    }
  }
  KVLAB_ASSIGN_OR_RETURN(Json config, read_json_file(tokenizer_dir / "config.json"));
  const auto vocabulary = config.at("vocab_size").get<int64_t>();
  config["hidden_size"] = kHidden;
  config["intermediate_size"] = kIntermediate;
  config["num_attention_heads"] = kHeads;
  config["num_key_value_heads"] = kKvHeads;
  config["num_hidden_layers"] = kLayers;
  config["max_position_embeddings"] = max_positions;
  KVLAB_RETURN_IF_ERROR(write_file(dir / "config.json", dump_json(config, 2)));

  TensorList list;
  list.add("model.embed_tokens.weight", {vocabulary, kHidden}, 0, 1);
  list.add("model.norm.weight", {kHidden}, 1, 0.1F);
  constexpr int64_t kKvWidth = kHidden / kHeads * kKvHeads;
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    list.add(layer + "input_layernorm.weight", {kHidden}, 1, 0.1F);
    list.add(layer + "post_attention_layernorm.weight", {kHidden}, 1, 0.1F);
    list.add(layer + "self_attn.q_proj.weight", {kHidden, kHidden}, 0, 0.3F);
    list.add(layer + "self_attn.k_proj.weight", {kKvWidth, kHidden}, 0, 0.3F);
    list.add(layer + "self_attn.v_proj.weight", {kKvWidth, kHidden}, 0, 0.3F);
    list.add(layer + "self_attn.o_proj.weight", {kHidden, kHidden}, 0, 0.3F);
    list.add(layer + "mlp.gate_proj.weight", {kIntermediate, kHidden}, 0, 0.3F);
    list.add(layer + "mlp.up_proj.weight", {kIntermediate, kHidden}, 0, 0.3F);
    list.add(layer + "mlp.down_proj.weight", {kHidden, kIntermediate}, 0, 0.3F);
  }
  return write_safetensors(dir / "model.safetensors", list.tensors(), {{"format", "pt"}});
}

}  // namespace kvlab
