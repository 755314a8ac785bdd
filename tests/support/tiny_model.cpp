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

constexpr int64_t kLayers = 2;

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
                             const std::filesystem::path& dir, const TinyModelShape& shape) {
  const int64_t hidden = shape.hidden_size;
  const int64_t intermediate = 2 * hidden;
  const int64_t kv_width = hidden / shape.num_heads * shape.num_kv_heads;
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
  config["hidden_size"] = hidden;
  config["intermediate_size"] = intermediate;
  config["num_attention_heads"] = shape.num_heads;
  config["num_key_value_heads"] = shape.num_kv_heads;
  config["num_hidden_layers"] = kLayers;
  config["max_position_embeddings"] = shape.max_positions;
  KVLAB_RETURN_IF_ERROR(write_file(dir / "config.json", dump_json(config, 2)));

  TensorList list;
  list.add("model.embed_tokens.weight", {vocabulary, hidden}, 0, 1);
  list.add("model.norm.weight", {hidden}, 1, 0.1F);
  for (int64_t i = 0; i < kLayers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    list.add(layer + "input_layernorm.weight", {hidden}, 1, 0.1F);
    list.add(layer + "post_attention_layernorm.weight", {hidden}, 1, 0.1F);
    list.add(layer + "self_attn.q_proj.weight", {hidden, hidden}, 0, 0.3F);
    list.add(layer + "self_attn.k_proj.weight", {kv_width, hidden}, 0, 0.3F);
    list.add(layer + "self_attn.v_proj.weight", {kv_width, hidden}, 0, 0.3F);
    list.add(layer + "self_attn.o_proj.weight", {hidden, hidden}, 0, 0.3F);
    list.add(layer + "mlp.gate_proj.weight", {intermediate, hidden}, 0, 0.3F);
    list.add(layer + "mlp.up_proj.weight", {intermediate, hidden}, 0, 0.3F);
    list.add(layer + "mlp.down_proj.weight", {hidden, intermediate}, 0, 0.3F);
  }
  return write_safetensors(dir / "model.safetensors", list.tensors(), {{"format", "pt"}});
}

}  // namespace kvlab
