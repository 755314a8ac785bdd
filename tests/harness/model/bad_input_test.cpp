// Broken model folders and impossible prompts: a clear message, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/generation/greedy.h"
#include "harness/model/causal_lm.h"
#include "harness/model/safetensors.h"
#include "harness/model/threads.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

std::string message(const absl::Status& status) {
  return status.ok() ? "no error" : std::string(status.message());
}

std::filesystem::path copy_of_tiny_model() {
  const auto dir = std::filesystem::path(testing::TempDir()) / "kvlab_bad_model";
  std::filesystem::remove_all(dir);
  std::filesystem::copy(golden_dir() / "models" / "tiny-gqa", dir);
  return dir;
}

absl::Status load_status(const std::filesystem::path& dir, const LoadOptions& options = {}) {
  return CausalLm::load(dir, options).status();
}

// Rewrites the model's tensors: `change` sees each before it is written and may drop it.
template <typename Change>
void rewrite(const std::filesystem::path& dir, Change&& change) {
  const auto path = dir / "model.safetensors";
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<SafetensorsTensor> tensors;
  for (const auto& [name, entry] : (*file)->header().tensors) {
    SafetensorsTensor tensor{name, entry.type, entry.shape, (*file)->bytes(entry)};
    if (change(tensor)) {
      tensors.push_back(tensor);
    }
  }
  ASSERT_TRUE(write_safetensors(path, tensors, {}).ok());
}

TEST(BadModel, TruncatedWeightsAreRefusedAtEveryLength) {
  const auto dir = copy_of_tiny_model();
  const auto path = dir / "model.safetensors";
  const auto size = std::filesystem::file_size(path);
  for (const double share : {0.999, 0.5, 0.1, 0.001, 0.00001, 0.0}) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(static_cast<double>(size) * share));
    EXPECT_THAT(message(load_status(dir)), HasSubstr("model.safetensors")) << share;
  }
}

TEST(BadModel, AMissingTensorIsNamed) {
  const auto dir = copy_of_tiny_model();
  rewrite(dir, [](const SafetensorsTensor& tensor) {
    return tensor.name != "model.layers.1.mlp.up_proj.weight";
  });
  EXPECT_THAT(message(load_status(dir)),
              HasSubstr("'model.layers.1.mlp.up_proj.weight' is missing"));
}

TEST(BadModel, AWrongShapeIsNamedWithBothShapes) {
  const auto dir = copy_of_tiny_model();
  rewrite(dir, [](SafetensorsTensor& tensor) {
    if (tensor.name == "model.norm.weight") {
      tensor.shape = {1, tensor.shape[0]};
    }
    return true;
  });
  EXPECT_THAT(message(load_status(dir)), HasSubstr("'model.norm.weight' has shape [1, "));
}

TEST(BadModel, IntegerWeightsAreRefused) {
  const auto dir = copy_of_tiny_model();
  rewrite(dir, [](SafetensorsTensor& tensor) {
    if (tensor.name == "model.norm.weight") {
      tensor.type = StoredType::kInt32;
    }
    return true;
  });
  EXPECT_THAT(message(load_status(dir)), HasSubstr("stored as I32"));
}

TEST(BadModel, ATensorWithoutAPlaceIsNotIgnored) {
  const auto dir = copy_of_tiny_model();
  rewrite(dir, [](SafetensorsTensor& tensor) {
    if (tensor.name == "model.layers.0.mlp.gate_proj.weight") {
      tensor.name = "model.layers.0.mlp.experts.gate_proj.weight";
    }
    return true;
  });
  EXPECT_THAT(message(load_status(dir)), HasSubstr("gate_proj"));
  const auto other = copy_of_tiny_model();
  const auto config = read_json_file(other / "config.json");
  Json changed = *config;
  changed["model_type"] = changed["model_type"] == "qwen2" ? "llama" : "qwen2";
  ASSERT_TRUE(write_file(other / "config.json", dump_json(changed)).ok());
  EXPECT_FALSE(load_status(other).ok());
}

TEST(BadModel, AFolderThatIsNoModelSaysWhatIsMissing) {
  EXPECT_THAT(message(load_status("/nonexistent")), HasSubstr("config.json"));
  const auto dir = copy_of_tiny_model();
  std::filesystem::remove(dir / "model.safetensors");
  EXPECT_THAT(message(load_status(dir)), HasSubstr("no weights"));
  ASSERT_TRUE(write_file(dir / "config.json", "{").ok());
  EXPECT_THAT(message(load_status(dir)), HasSubstr("not valid JSON"));
}

TEST(BadModel, ImpossibleOptionsAreErrors) {
  const auto dir = golden_dir() / "models" / "tiny-gqa";
  EXPECT_THAT(message(load_status(dir, {.dtype = at::kHalf})), HasSubstr("float32 or bfloat16"));
  EXPECT_THAT(message(load_status(dir, {.num_layers = 99})), HasSubstr("99"));
  if (!at::hasCUDA()) {
    EXPECT_THAT(message(load_status(dir, {.device = at::kCUDA})), HasSubstr("CUDA"));
  }
}

class BadPrompt : public testing::Test {
 protected:
  void SetUp() override {
    set_compute_threads(1);
    auto model = CausalLm::load(golden_dir() / "models" / "tiny-gqa", {.dtype = at::kFloat});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }
  std::string prefill_error(const std::vector<int32_t>& ids, const PrefillOptions& options = {}) {
    return message(model_->prefill(ids, options).status());
  }
  std::shared_ptr<CausalLm> model_;
};

TEST_F(BadPrompt, EmptyForeignAndOverlongPromptsAreRefused) {
  const auto vocab = static_cast<int32_t>(model_->config().vocab_size);
  EXPECT_THAT(prefill_error({}), HasSubstr("empty"));
  EXPECT_THAT(prefill_error({1, 2, vocab}), HasSubstr("token 2 has id"));
  EXPECT_THAT(prefill_error({1, -1}), HasSubstr("token 1 has id -1"));
  const auto too_long = static_cast<size_t>(model_->config().max_positions + 1);
  EXPECT_THAT(prefill_error(std::vector<int32_t>(too_long, 1)), HasSubstr("positions"));
  EXPECT_THAT(prefill_error({1}, {.chunk_size = 0, .needs = {}}), HasSubstr("chunk"));
}

TEST_F(BadPrompt, DecodingBeyondThePositionsIsAnError) {
  const auto length = static_cast<size_t>(model_->config().max_positions);
  const auto state = model_->prefill(std::vector<int32_t>(length, 1), {});
  ASSERT_TRUE(state.ok()) << state.status();
  std::vector<ArmRequest> requests;
  requests.push_back({.cache = KvCache::full(*state, 4),
                      .first_logits = (*state)->last_logits,
                      .max_new_tokens = 3,
                      .min_new_tokens = 0,
                      .stop_ids = {}});
  EXPECT_THAT(message(decode_greedy(*model_, std::move(requests)).status()),
              HasSubstr("positions"));
}

TEST_F(BadPrompt, RequestsThatCannotRunAreErrors) {
  const auto state = model_->prefill(std::vector<int32_t>{1, 2, 3}, {});
  const auto status_of = [&](int64_t room, int64_t tokens, const at::Tensor& logits) {
    std::vector<ArmRequest> requests;
    requests.push_back({.cache = KvCache::full(*state, room),
                        .first_logits = logits,
                        .max_new_tokens = tokens,
                        .min_new_tokens = 0,
                        .stop_ids = {}});
    return message(decode_greedy(*model_, std::move(requests)).status());
  };
  EXPECT_THAT(status_of(4, 0, (*state)->last_logits), HasSubstr("max_new_tokens"));
  EXPECT_THAT(status_of(2, 5, (*state)->last_logits), HasSubstr("room for 2"));
  EXPECT_THAT(status_of(4, 2, {}), HasSubstr("first token"));
  EXPECT_THAT(status_of(4, 2, at::full({128}, NAN)), HasSubstr("NaN"));
}

TEST_F(BadPrompt, TheLowestIdWinsATie) {
  at::Tensor logits = at::zeros({9});
  EXPECT_EQ(*argmax_token(logits), 0);
  logits[4] = 1;
  logits[7] = 1;
  EXPECT_EQ(*argmax_token(logits), 4);
  logits[1] = NAN;
  EXPECT_EQ(*argmax_token(logits), 4);
}

}  // namespace
}  // namespace kvlab
