#include "methods/lookahead_kv/adapter.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig shape_of(int64_t hidden, int64_t inner, int64_t layers, int64_t heads, int64_t kv_heads,
                     int64_t head_dim) {
  ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = hidden;
  config.intermediate_size = inner;
  config.num_layers = layers;
  config.num_heads = heads;
  config.num_kv_heads = kv_heads;
  config.head_dim = head_dim;
  return config;
}

// arXiv 2603.10899, table 1, in thousands; shapes from the models' published configs.
TEST(LookaheadAdapter, TrainableNumbersEqualThePapers) {
  const auto thousands = [](const ModelConfig& config) {
    return (num_trainable(config, LookaheadShape::paper()) + 500) / 1000;
  };
  EXPECT_EQ(thousands(shape_of(2048, 8192, 16, 32, 8, 64)), 5403);     // Llama-3.2-1B
  EXPECT_EQ(thousands(shape_of(3072, 8192, 28, 24, 8, 128)), 11903);   // Llama-3.2-3B
  EXPECT_EQ(thousands(shape_of(4096, 14336, 32, 32, 8, 128)), 20554);  // Llama-3.1-8B
  EXPECT_EQ(thousands(shape_of(2048, 6144, 28, 16, 8, 128)), 8528);    // Qwen3-1.7B
  EXPECT_EQ(thousands(shape_of(2560, 9728, 36, 32, 8, 128)), 16220);   // Qwen3-4B
  EXPECT_EQ(thousands(shape_of(4096, 12288, 36, 32, 8, 128)), 21455);  // Qwen3-8B
}

class AdapterFile : public ::testing::Test {
 protected:
  std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) / "kvlab_adapter.safetensors";
  ModelConfig config_ = shape_of(32, 48, 2, 4, 2, 8);
};

TEST_F(AdapterFile, WhatIsSavedIsLoaded) {
  const auto adapter = LookaheadAdapter::initialise(config_, LookaheadShape::paper(), {}, 3);
  ASSERT_TRUE(adapter->save(path_, config_, at::kFloat, {{"base_model", "tiny"}}).ok());
  const auto loaded = LookaheadAdapter::load(path_, config_, {}).value();
  const auto before = adapter->named_tensors();
  const auto after = loaded->named_tensors();
  ASSERT_EQ(before.size(), after.size());
  int64_t numbers = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].first, after[i].first);
    EXPECT_TRUE(at::equal(before[i].second, after[i].second)) << before[i].first;
    numbers += after[i].second.numel();
  }
  EXPECT_EQ(numbers, num_trainable(config_, LookaheadShape::paper()));
  EXPECT_EQ(loaded->metadata().at("base_model"), "tiny");
}

TEST_F(AdapterFile, MetadataNumbersAreReadWholeOrRefused) {
  const auto adapter = LookaheadAdapter::initialise(config_, LookaheadShape::paper(), {}, 3);
  ASSERT_TRUE(adapter->save(path_, config_, at::kFloat, {}).ok());
  const std::string good = read_file(path_).value();
  const std::pair<std::string, std::vector<std::string>> faults[] = {
      {R"("lora_alpha":"32")", {"3x", "0x", "  "}},
      {R"("num_lookahead_tokens":"32")", {"3.", "-1"}}};
  for (const auto& [entry, values] : faults) {
    const size_t at = good.find(entry);
    ASSERT_NE(at, std::string::npos) << entry;
    for (const std::string& value : values) {
      std::string bad = good;
      bad.replace(at + entry.size() - 3, 2, value);
      ASSERT_TRUE(write_file(path_, bad).ok());
      EXPECT_THAT(message_of(LookaheadAdapter::load(path_, config_, {}).status()),
                  ::testing::HasSubstr(path_.string()))
          << entry << " " << value;
    }
  }
}

// The CPU's kernel against the differentiable form, on columns of a wider output.
TEST_F(AdapterFile, ALoadedAdapterAddsItsDelta) {
  const auto adapter = LookaheadAdapter::initialise(config_, LookaheadShape::paper(), {}, 3);
  auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
  for (const auto& [name, tensor] : adapter->named_tensors()) {
    at::Tensor(tensor).normal_(0, 0.3, generator);
  }
  ASSERT_TRUE(adapter->save(path_, config_, at::kFloat, {}).ok());
  const auto loaded = LookaheadAdapter::load(path_, config_, {}).value();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const RowAdapter::Target target : LookaheadShape::paper().targets) {
      SCOPED_TRACE(target_name(target));
      const auto [out_features, in_features] = target_features(config_, target);
      const at::Tensor rows = at::randn({32, in_features}, generator).to(type);
      const at::Tensor wide = at::randn({32, out_features + 8}, generator).to(type);
      const at::Tensor expected = wide.narrow(1, 4, out_features).to(at::kFloat) +
                                  adapter->delta(0, target, rows.to(at::kFloat));
      const at::Tensor before = wide.clone();
      at::Tensor columns = wide.narrow(1, 4, out_features);
      loaded->add_delta(0, target, rows, columns);
      EXPECT_TRUE(
          at::allclose(columns.to(at::kFloat), expected, type == at::kFloat ? 1e-5 : 8e-3, 1e-4));
      EXPECT_FALSE(at::equal(wide, before));
      EXPECT_TRUE(at::equal(wide.narrow(1, 0, 4), before.narrow(1, 0, 4)));
    }
  }
}

TEST_F(AdapterFile, AnotherModelIsRefusedWithBothSidesNamed) {
  const auto adapter = LookaheadAdapter::initialise(config_, LookaheadShape::paper(), {}, 3);
  ASSERT_TRUE(adapter->save(path_, config_, at::kBFloat16, {{"base_model", "tiny"}}).ok());
  ModelConfig other = config_;
  other.num_layers = 3;
  EXPECT_THAT(message_of(LookaheadAdapter::load(path_, other, {}).status()),
              AllOf(HasSubstr("tiny"), HasSubstr("3 layers")));
}

TEST_F(AdapterFile, OtherFilesAreRefused) {
  ASSERT_TRUE(write_file(path_, "no adapter").ok());
  EXPECT_FALSE(LookaheadAdapter::load(path_, config_, {}).ok());
}

TEST(LookaheadAdapterTargets, NamesAreParsedAndUnknownOnesListTheKnown) {
  EXPECT_EQ(parse_targets("all")->size(), 7U);
  EXPECT_EQ(parse_targets("attention")->size(), 4U);
  EXPECT_EQ(parse_targets("none")->size(), 0U);
  EXPECT_EQ(parse_targets("q_proj,k_proj")->size(), 2U);
  EXPECT_THAT(message_of(parse_targets("qproj").status()), HasSubstr("q_proj"));
}

TEST(ArchitectureHash, ModelsThatComputeDifferentlyDiffer) {
  ModelConfig llama = shape_of(2048, 8192, 16, 32, 8, 64);
  llama.rope_scaling = {.type = "llama3", .factor = 8, .original_max_position_embeddings = 8192};
  ModelConfig other = llama;
  other.rope_scaling.low_freq_factor = 2;
  EXPECT_NE(architecture_hash(llama), architecture_hash(other));
  other = llama;
  other.rope_scaling.original_max_position_embeddings = 4096;
  EXPECT_NE(architecture_hash(llama), architecture_hash(other));
  other = llama;
  other.sliding_window = 4096;
  EXPECT_NE(architecture_hash(llama), architecture_hash(other));
  other = llama;
  other.max_positions += 1;  // only how far it may be asked
  EXPECT_EQ(architecture_hash(llama), architecture_hash(other));
}

}  // namespace
}  // namespace kvlab
