// The runtime on a GPU against itself on the CPU. Skips without one.
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "harness/cache/kv_cache.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/model/attention.h"
#include "harness/model/causal_lm.h"
#include "methods/attention_mass_at.h"
#include "methods/lookahead_kv/adapter.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

class CudaRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    const char* reason = !kCudaKernels    ? "built without KVLAB_CUDA"
                         : !at::hasCUDA() ? "no CUDA device"
                                          : nullptr;
    if (reason != nullptr) {
      if (std::getenv("KVLAB_REQUIRE_GPU") != nullptr) {
        FAIL() << "KVLAB_REQUIRE_GPU is set: " << reason;
      }
      GTEST_SKIP() << "needs a GPU: " << reason;
    }
  }

  at::Tensor random_tensor(std::vector<int64_t> shape, at::ScalarType type) {
    return at::randn(shape, generator_).to(type);
  }

  c10::InferenceMode inference_;
  at::Generator generator_ = at::make_generator<at::CPUGeneratorImpl>(3);
  std::mt19937 random_{4};
};

at::Tensor on_gpu(const at::Tensor& tensor) { return tensor.to(at::kCUDA); }

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kCPU, at::kDouble) - b.to(at::kCPU, at::kDouble)).abs().max().item<double>();
}

TEST_F(CudaRuntimeTest, ChunkAttentionAndItsSumsEqualTheReference) {
  for (int round = 0; round < 40; ++round) {
    const at::ScalarType type = round % 2 == 0 ? at::kFloat : at::kBFloat16;
    const int64_t kv_heads = 1 + random_() % 3;
    const int64_t heads = kv_heads * (1 + random_() % 8);
    const int64_t head_dim = std::vector<int64_t>{64, 80, 96, 128, 256}[random_() % 5];
    const int64_t q_len = 1 + random_() % 200;
    const int64_t kv_len = q_len + (random_() % 2 == 0 ? 0 : random_() % 300);
    ChunkAttentionArgs args;
    args.queries = random_tensor({q_len, heads, head_dim}, type).transpose(0, 1);
    args.keys = random_tensor({kv_heads, kv_len, head_dim}, type);
    args.values = random_tensor({kv_heads, kv_len, head_dim}, type);
    args.scale = 1 / std::sqrt(static_cast<double>(head_dim));
    args.want_logsumexp = true;
    const ChunkAttention expected = chunk_attention_reference(args);
    at::Tensor expected_sums = at::zeros({heads, kv_len}, at::kFloat);
    add_chunk_attention_sums_reference(args, expected.logsumexp, expected_sums);
    ChunkAttentionArgs gpu = args;
    gpu.queries = on_gpu(args.queries);
    gpu.keys = on_gpu(args.keys);
    gpu.values = on_gpu(args.values);
    const ChunkAttention result = chunk_attention(gpu);
    at::Tensor sums = on_gpu(at::zeros({heads, kv_len}, at::kFloat));
    add_chunk_attention_sums(gpu, result.logsumexp, sums);
    const double tolerance = type == at::kBFloat16 ? 3e-2 : 1e-4;
    EXPECT_LT(largest_difference(result.output, expected.output), tolerance) << "round " << round;
    EXPECT_LT(largest_difference(result.logsumexp, expected.logsumexp), tolerance);
    EXPECT_LT(largest_difference(sums, expected_sums), 10 * tolerance);
  }
}

TEST_F(CudaRuntimeTest, AttentionMassEqualsTheCpu) {
  for (int round = 0; round < 40; ++round) {
    const at::ScalarType type = round % 2 == 0 ? at::kFloat : at::kBFloat16;
    const int64_t kv_heads = 1 + random_() % 3;
    const int64_t heads = kv_heads * (1 + random_() % 8);
    const int64_t head_dim = std::vector<int64_t>{64, 80, 96, 128, 256}[random_() % 5];
    const int64_t num_keys = 1 + random_() % 2000;
    QueryRows rows;
    rows.queries = random_tensor({heads, 1 + static_cast<int64_t>(random_() % 40), head_dim}, type);
    if (random_() % 2 == 0) {
      rows.extra_keys =
          random_tensor({kv_heads, 1 + static_cast<int64_t>(random_() % 40), head_dim}, type);
    }
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      rows.visible.push_back(random_() % (num_keys + 1));
    }
    const at::Tensor keys = random_tensor({kv_heads, num_keys, head_dim}, type);
    const at::Tensor expected = attention_mass(rows, keys, RowReduction::kMean);
    QueryRows gpu = rows;
    gpu.queries = on_gpu(rows.queries);
    gpu.extra_keys = rows.extra_keys.defined() ? on_gpu(rows.extra_keys) : at::Tensor();
    const at::Tensor mass = attention_mass(gpu, on_gpu(keys), RowReduction::kMean);
    EXPECT_TRUE(mass.is_cuda());
    EXPECT_LT(largest_difference(mass, expected), 1e-4) << "round " << round;
  }
}

// Prefill, a ragged selection and some steps of every kind of tiny checkpoint.
TEST_F(CudaRuntimeTest, TinyModelsDecodeAsOnTheCpu) {
  for (const std::string name :
       {"tiny-gqa", "tiny-llama3", "tiny-qwen2", "tiny-qwen3", "tiny-mistral-window"}) {
    const auto dir = golden_dir() / "models" / name;
    const GoldenFile golden(golden_dir() / "transformers" / (name + ".safetensors"));
    const auto ids = golden.get<int32_t>(golden.cases().front() + ".prompt_ids");
    std::vector<at::Tensor> logits;
    for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
      auto model = CausalLm::load(dir, {.dtype = at::kFloat, .device = device});
      ASSERT_TRUE(model.ok()) << model.status();
      auto state = (*model)->prefill(ids, {.chunk_size = 16, .needs = {.attention_sums = true}});
      ASSERT_TRUE(state.ok()) << state.status();
      Selection selection;
      selection.prompt_len = (*state)->prompt_len();
      for (const LayerState& layer : (*state)->layers) {
        auto& heads = selection.kept.emplace_back();
        for (int64_t head = 0; head < layer.keys.size(0); ++head) {
          auto& kept = heads.emplace_back();
          for (int32_t i = 0; i < selection.prompt_len; i += 1 + static_cast<int32_t>(head % 3)) {
            kept.push_back(i);
          }
        }
      }
      KvCache cache = KvCache::compact(**state, selection, 4);
      KvCache* const caches[] = {&cache};
      std::vector<at::Tensor> all = {(*state)->last_logits,
                                     (*state)->layers.back().attention_sums.flatten()};
      for (const int32_t id : {3, 5, 7}) {
        const int32_t token[] = {id};
        auto step = (*model)->decode_step(token, caches, {});
        ASSERT_TRUE(step.ok()) << step.status();
        all.push_back(step->flatten());
      }
      for (at::Tensor& tensor : all) {
        tensor = tensor.to(at::kCPU, at::kFloat);
      }
      logits.push_back(at::cat(all));
    }
    EXPECT_LT(largest_difference(logits[0], logits[1]), 1e-3) << name;
  }
}

TEST_F(CudaRuntimeTest, AnAdaptersRowsEqualTheCpus) {
  const auto dir = golden_dir() / "models" / "tiny-gqa";
  const auto config = ModelConfig::load(dir).value();
  const auto adapter =
      LookaheadAdapter::initialise(config, LookaheadShape::paper(), at::Tensor(), /*seed=*/2);
  for (const auto& [name, tensor] : adapter->named_tensors()) {
    if (name.ends_with("lora_B")) {
      tensor.uniform_(-0.1, 0.1, generator_);  // zero at the start: the update would be nothing
    }
  }
  const std::vector<int32_t> ids = {5, 9, 2, 7, 11, 3, 8, 4};
  std::vector<at::Tensor> queries;
  for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
    const auto model = CausalLm::load(dir, {.dtype = at::kFloat, .device = device}).value();
    const auto state = model->prefill(ids, {}).value();
    const auto rows = model->run_rows(*state, adapter->tokens(), adapter.get());
    ASSERT_TRUE(rows.ok()) << rows.status();
    queries.push_back(rows->queries.back().to(at::kCPU));
  }
  EXPECT_LT(largest_difference(queries[0], queries[1]), 1e-4);
}

}  // namespace
}  // namespace kvlab
