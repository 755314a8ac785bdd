#include "harness/model/model_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json small_config() {
  return {{"model_type", "llama"},    {"hidden_size", 64},
          {"intermediate_size", 128}, {"num_hidden_layers", 2},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"vocab_size", 128},        {"max_position_embeddings", 512},
          {"rms_norm_eps", 1e-5},     {"rope_theta", 10000.0},
          {"eos_token_id", 1}};
}

absl::StatusOr<ModelConfig> load(const Json& config, const Json& generation = nullptr) {
  const auto dir = std::filesystem::path(testing::TempDir()) / "kvlab_model_config";
  std::filesystem::remove_all(dir);
  EXPECT_TRUE(write_file(dir / "config.json", dump_json(config)).ok());
  if (!generation.is_null()) {
    EXPECT_TRUE(write_file(dir / "generation_config.json", dump_json(generation)).ok());
  }
  return ModelConfig::load(dir);
}

std::string error_of(const Json& config) {
  const auto loaded = load(config);
  return loaded.ok() ? "no error" : std::string(loaded.status().message());
}

TEST(ModelConfig, EveryMissingKeyIsNamed) {
  for (const char* key :
       {"model_type", "hidden_size", "intermediate_size", "num_hidden_layers",
        "num_attention_heads", "vocab_size", "max_position_embeddings", "rms_norm_eps"}) {
    Json config = small_config();
    config.erase(key);
    EXPECT_THAT(error_of(config), HasSubstr("\"" + std::string(key) + "\" is missing"));
  }
}

TEST(ModelConfig, MistypedAndImpossibleValuesAreErrors) {
  for (const Json& value : {Json("64"), Json(0), Json(-1), Json(1.5), Json(9999999999)}) {
    Json config = small_config();
    config["hidden_size"] = value;
    EXPECT_THAT(error_of(config), HasSubstr("hidden_size")) << value;
  }
  Json config = small_config();
  config["num_key_value_heads"] = 3;
  EXPECT_THAT(error_of(config), HasSubstr("multiple"));
  config = small_config();
  config["head_dim"] = 15;
  EXPECT_THAT(error_of(config), HasSubstr("even"));
  config = small_config();
  config["eos_token_id"] = 128;
  EXPECT_THAT(error_of(config), HasSubstr("below 128"));
}

TEST(ModelConfig, DefaultsFollowTransformers) {
  Json config = small_config();
  config.erase("num_key_value_heads");
  config.erase("rope_theta");
  const auto llama = load(config);
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->num_kv_heads, 4);
  EXPECT_EQ(llama->head_dim, 16);
  EXPECT_EQ(llama->rope_theta, 10000);
  EXPECT_EQ(llama->rope_scaling.type, "default");
  EXPECT_FALSE(llama->tie_word_embeddings);
  EXPECT_EQ(llama->sliding_window, 0);
  config["model_type"] = "qwen3";
  EXPECT_EQ(load(config)->head_dim, 128);
  EXPECT_TRUE(load(config)->query_key_norm);
  config["model_type"] = "qwen2";
  EXPECT_TRUE(load(config)->attention_bias);
  config["model_type"] = "mistral";
  EXPECT_EQ(load(config)->sliding_window, 4096);
  config["sliding_window"] = nullptr;
  EXPECT_EQ(load(config)->sliding_window, 0);
  config["sliding_window"] = 24;
  EXPECT_EQ(load(config)->sliding_window, 24);
}

TEST(ModelConfig, BothSpellingsOfRopeAndDtypeMeanTheSame) {
  Json old_spelling = small_config();
  old_spelling["rope_scaling"] = {
      {"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}};
  old_spelling["torch_dtype"] = "bfloat16";
  Json new_spelling = small_config();
  new_spelling.erase("rope_theta");
  new_spelling["rope_parameters"] = {{"rope_type", "yarn"},
                                     {"factor", 4.0},
                                     {"original_max_position_embeddings", 64},
                                     {"rope_theta", 10000.0}};
  new_spelling["dtype"] = "bfloat16";
  for (const Json& config : {old_spelling, new_spelling}) {
    const auto loaded = load(config);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->rope_scaling.type, "yarn");
    EXPECT_EQ(loaded->rope_scaling.factor, 4);
    EXPECT_EQ(loaded->rope_scaling.original_max_position_embeddings, 64);
    EXPECT_EQ(loaded->rope_theta, 10000);
    EXPECT_EQ(loaded->torch_dtype, "bfloat16");
  }
}

TEST(ModelConfig, UnsupportedFeaturesAreNamedWithWhatIsSupported) {
  const std::vector<std::pair<Json, std::string>> cases = {
      {{{"model_type", "gemma3_text"}}, "llama, qwen2, qwen3, mistral"},
      {{{"hidden_act", "gelu"}}, "hidden_act 'gelu'"},
      {{{"attention_bias", true}}, "attention_bias"},
      {{{"mlp_bias", true}}, "mlp_bias"},
      {{{"use_sliding_window", true}}, "use_sliding_window"},
      {{{"partial_rotary_factor", 0.5}}, "partial_rotary_factor"},
      {{{"quantization_config", {{"quant_method", "fp8"}}}}, "quantization_config"},
      {{{"layer_types", {"full_attention", "sliding_attention"}}}, "sliding_attention"},
      {{{"rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}}}, "default, linear, llama3, yarn"},
      {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 2.0}, {"mscale", 1.0}}}}, "mscale"},
      {{{"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}}}, "per layer type"},
  };
  for (const auto& [change, expected] : cases) {
    Json config = small_config();
    config.update(change);
    EXPECT_THAT(error_of(config), HasSubstr(expected)) << change;
  }
}

TEST(ModelConfig, RopeScalingIsChecked) {
  Json config = small_config();
  config["rope_scaling"] = {{"rope_type", "linear"}};
  EXPECT_THAT(error_of(config), HasSubstr("\"factor\" is missing"));
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 0.5}};
  EXPECT_THAT(error_of(config), HasSubstr("1 or more"));
  config["rope_scaling"] = {{"rope_type", "llama3"}, {"factor", 8.0}};
  EXPECT_THAT(error_of(config), HasSubstr("low_freq_factor"));
}

TEST(ModelConfig, StopIdsComeFromTheGenerationConfigFirst) {
  EXPECT_THAT(load(small_config())->stop_ids, ElementsAre(1));
  EXPECT_THAT(load(small_config(), {{"eos_token_id", {5, 6}}})->stop_ids, ElementsAre(5, 6));
  EXPECT_THAT(load(small_config(), {{"temperature", 0.6}})->stop_ids, ElementsAre(1));
}

TEST(ModelConfig, PublishedConfigsLoad) {
  KVLAB_SHARED_DATA_OR_SKIP(root);
  const auto configs = root / "model_configs";
  const auto llama = ModelConfig::load(configs / "Llama-3.1-8B-Instruct");
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->rope_scaling.type, "llama3");
  EXPECT_EQ(llama->head_dim, 128);
  EXPECT_THAT(llama->stop_ids, ElementsAre(128001, 128008, 128009));
  const auto qwen2 = ModelConfig::load(configs / "Qwen2.5-0.5B-Instruct");
  ASSERT_TRUE(qwen2.ok()) << qwen2.status();
  EXPECT_EQ(qwen2->sliding_window, 0);
  EXPECT_THAT(qwen2->stop_ids, ElementsAre(151645, 151643));
  const auto qwen3 = ModelConfig::load(configs / "Qwen3-8B");
  ASSERT_TRUE(qwen3.ok()) << qwen3.status();
  EXPECT_TRUE(qwen3->query_key_norm);
  const auto mistral = ModelConfig::load(configs / "Mistral-7B-Instruct-v0.2");
  ASSERT_TRUE(mistral.ok()) << mistral.status();
  EXPECT_EQ(mistral->sliding_window, 0);
  EXPECT_FALSE(ModelConfig::load(configs / "gemma-3-270m-it").ok());
}

}  // namespace
}  // namespace kvlab
