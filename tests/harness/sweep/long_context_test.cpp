// 131,072 tokens through the whole program: prefill in chunks, every method, eviction, decoding.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <set>

#include "harness/model/model_config.h"
#include "methods/lookahead_kv/adapter.h"
#include "results/sqlite.h"
#include "tests/harness/sweep/sweep_process.h"
#include "tests/support/shared_data.h"
#include "tests/support/tiny_model.h"

namespace kvlab {
namespace {

constexpr int64_t kPositions = 131'072;
constexpr int64_t kBudget = 128;
// The full cache takes 32 MiB (2 layers, 1 KV head of 32, keys and values, bfloat16), float32
// activations of the whole prompt 32 MiB each; program and libraries take about 0.5 GiB. Anything
// that made rows x keys of the whole prompt would need 64 GiB a head.
constexpr int64_t kMemoryBound = int64_t{1} << 30;

class LongContext : public SweepProcessTest {};

TEST_F(LongContext, EveryMethodRunsAt131072TokensInBoundedMemory) {
  KVLAB_DEFAULT_MODEL_OR_SKIP(default_model);
  ASSERT_TRUE(
      make_tiny_model(
          default_model, file("model"),
          {.hidden_size = 64, .num_heads = 2, .num_kv_heads = 1, .max_positions = kPositions})
          .ok());
  const auto config = ModelConfig::load(file("model"));
  ASSERT_TRUE(config.ok()) << config.status();
  const auto adapter =
      LookaheadAdapter::initialise(*config, LookaheadShape::paper(), at::Tensor(), 1);
  ASSERT_TRUE(adapter->save(file("adapter.safetensors"), *config, at::kBFloat16, {}).ok());
  const Json sweep = {{"model", file("model").string()},
                      {"benchmarks",
                       {{{"name", "ruler"},
                         {"tasks", {"niah_single_1"}},
                         {"lengths", {kPositions}},
                         {"samples", 1},
                         {"template", "model"}}}},
                      {"methods",
                       {"full",
                        "oracle",
                        "random",
                        "streaming_llm",
                        "knorm",
                        "keydiff",
                        "tova",
                        "snapkv",
                        "pyramidkv",
                        "adakv",
                        "h2o",
                        "expected_attention",
                        "laq",
                        {{"name", "speckv"}, {"params", {{"draft_layers", 1}}}},
                        {{"name", "lookahead_kv"},
                         {"params", {{"adapter", file("adapter.safetensors").string()}}}}}},
                      {"budgets", {kBudget}}};
  const pid_t pid = start(sweep, "long.sqlite");
  int status = 0;
  rusage usage{};
  ASSERT_EQ(::wait4(pid, &status, 0, &usage), pid);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << log("long.sqlite");

  const int64_t peak = int64_t{usage.ru_maxrss} * 1024;
  RecordProperty("peak_bytes", std::to_string(peak));
  std::printf("peak memory %.2f GiB, bound %.2f GiB\n", static_cast<double>(peak) / (1 << 30),
              static_cast<double>(kMemoryBound) / (1 << 30));
  EXPECT_LT(peak, kMemoryBound);

  const auto opened =
      Database::open(file("long.sqlite"), Database::Mode::kRead, std::chrono::seconds(5));
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto rows =
      (*opened)->prepare("SELECT method, status, prompt_tokens, kept_total, new_tokens FROM cells");
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::set<std::string> methods;
  while (rows->step().value()) {
    const std::string method(rows->text(0));
    methods.insert(method);
    EXPECT_EQ(rows->text(1), "ok") << method;
    EXPECT_GT(rows->int64(2), kPositions - 2'048) << method;
    EXPECT_EQ(rows->int64(3), config->num_layers * config->num_kv_heads *
                                  (method == "full" ? rows->int64(2) : kBudget))
        << method;
    EXPECT_GT(rows->int64(4), 0) << method;
  }
  EXPECT_EQ(methods.size(), 15U);
}

}  // namespace
}  // namespace kvlab
