// A prefill that evicts each layer as it is finished chooses what the shared prompt state chooses.
#include "harness/generation/layer_eviction.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "harness/base/status.h"
#include "methods/registry.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPromptLen = 203;
constexpr int64_t kMaxNewTokens = 12;

std::vector<int32_t> prompt_ids() {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kPromptLen; ++i) {
    ids.push_back((i * 37 + i / 7) % 126 + 2);
  }
  return ids;
}

std::shared_ptr<CausalLm> load(const std::string& name, at::ScalarType dtype = at::kFloat) {
  return CausalLm::load(golden_dir() / "models" / name, {.dtype = dtype}).value();
}

Json lookahead_params(const std::string& model) {
  return {{"adapter", (golden_dir() / "models" / (model + ".adapter.safetensors")).string()},
          {"accept_unknown_base", true}};
}

struct SharedRun {
  std::shared_ptr<const PromptState> prompt;
  Selection selection;
  std::vector<int32_t> reply;
};

std::vector<int32_t> reply_of(CausalLm& model, KvCache cache, const at::Tensor& logits) {
  std::vector<ArmRequest> requests;
  requests.push_back(
      {.cache = std::move(cache), .first_logits = logits, .max_new_tokens = kMaxNewTokens});
  return decode_greedy(model, std::move(requests)).value().front().token_ids;
}

SharedRun run_shared(CausalLm& model, const EvictionPolicy& policy, int64_t budget) {
  SharedRun run;
  run.prompt = model.prefill(prompt_ids(), {.needs = policy.needs()}).value();
  const SelectionRequest request{&policy, {budget}};
  SelectionBatch batch =
      select_entries(model, run.prompt, {&request, 1}, {.max_new_tokens = kMaxNewTokens}).value();
  run.selection = batch.arms.front().value().result.selection;
  run.reply = reply_of(model, KvCache::compact(*run.prompt, run.selection, kMaxNewTokens),
                       run.prompt->last_logits);
  return run;
}

LayerEviction run_by_layers(CausalLm& model, const EvictionPolicy& policy, int64_t budget,
                            int64_t chunk_size = 2048) {
  return prefill_and_evict(model, prompt_ids(), {&policy, {budget}},
                           {.chunk_size = chunk_size, .max_new_tokens = kMaxNewTokens})
      .value();
}

TEST(LayerEviction, EveryMethodChoosesTheSameEntriesAndGoesOnTheSame) {
  int64_t by_layers = 0;
  for (const char* name : {"tiny-gqa", "tiny-qwen3", "tiny-mistral-window"}) {
    const auto model = load(name);
    for (const MethodInfo& info : list_methods()) {
      if (info.name == "lookahead_kv") {
        continue;  // below
      }
      for (const char* allocation : {"uniform", "pyramid", "adaptive"}) {
        const auto policy = info.needs_budget ? make_policy(info.name, {{"allocation", allocation}})
                                              : make_policy(info.name, nullptr);
        ASSERT_TRUE(policy.ok()) << policy.status();
        if (!(*policy)->check_by_layers().ok()) {
          continue;
        }
        ++by_layers;
        SCOPED_TRACE(fmt::format("{} {} {}", name, info.name, allocation));
        const SharedRun shared = run_shared(*model, **policy, 48);
        const LayerEviction run = run_by_layers(*model, **policy, 48);
        EXPECT_EQ(run.result.selection.kept, shared.selection.kept);
        EXPECT_EQ(run.result.selection.prompt_len, kPromptLen);
        EXPECT_LT((run.last_logits - shared.prompt->last_logits).abs().max().item<double>(), 1e-4);
        EXPECT_EQ(run.cache.prompt_entries(), shared.selection.total_entries());
        EXPECT_EQ(run.cache.next_position(), kPromptLen);
        EXPECT_EQ(reply_of(*model, run_by_layers(*model, **policy, 48).cache, run.last_logits),
                  shared.reply);
      }
    }
  }
  EXPECT_GE(by_layers, 3 * 9 * 3);
}

TEST(LayerEviction, ChunksOfAnySizeGiveTheSameChoice) {
  const auto model = load("tiny-gqa");
  for (const char* name : {"snapkv", "h2o", "expected_attention", "keydiff"}) {
    const auto policy = make_policy(name, nullptr).value();
    const Selection whole = run_by_layers(*model, *policy, 48).result.selection;
    for (const int64_t chunk : {1, 7, 64, 202}) {
      EXPECT_EQ(run_by_layers(*model, *policy, 48, chunk).result.selection.kept, whole.kept)
          << name << " in chunks of " << chunk;
    }
  }
}

// Adds the deltas of another adapter, unknown to the kernels.
class OperatorsOnly final : public RowAdapter {
 public:
  explicit OperatorsOnly(std::shared_ptr<const RowAdapter> adapter)
      : adapter_(std::move(adapter)) {}
  void add_delta(int64_t layer, Target target, const at::Tensor& rows,
                 at::Tensor& out) const override {
    adapter_->add_delta(layer, target, rows, out);
  }

 private:
  std::shared_ptr<const RowAdapter> adapter_;
};

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

class LookaheadByLayers : public ::testing::TestWithParam<const char*> {};

TEST_P(LookaheadByLayers, RowsInOnePrefillEqualRowsOverTheFinishedPrompt) {
  const auto model = load(GetParam());
  const auto policy = make_policy("lookahead_kv", lookahead_params(GetParam())).value();
  const AppendedRows appended = policy->appended_rows(model->config()).value();
  const auto plain = model->prefill(prompt_ids(), {}).value();
  const CapturedQueries after =
      model->run_rows(*plain, appended.embeddings, appended.adapter.get()).value();
  for (const int64_t chunk : {1, 50, 202, 203, 2048}) {
    int64_t layers = 0;
    const auto compare = [&](int64_t layer, const PromptState& prompt,
                             const CapturedQueries& rows) -> absl::Status {
      ++layers;
      const LayerState& mine = prompt.layers[layer];
      // Prompt rows are those of a run without rows behind them.
      EXPECT_LT((mine.keys - plain->layers[layer].keys).abs().max().item<double>(), 1e-4);
      EXPECT_LT((mine.values - plain->layers[layer].values).abs().max().item<double>(), 1e-4);
      EXPECT_EQ(mine.keys.size(1), kPromptLen);
      EXPECT_LT((rows.queries[layer] - after.queries[layer]).abs().max().item<double>(), 1e-4);
      EXPECT_LT((rows.keys[layer] - after.keys[layer]).abs().max().item<double>(), 1e-4);
      EXPECT_EQ(rows.logsumexp[layer].defined(), layer + 1 < model->config().num_layers);
      if (rows.logsumexp[layer].defined()) {
        EXPECT_LT(largest_difference(rows.logsumexp[layer], after.logsumexp[layer]), 1e-4);
      }
      return absl::OkStatus();
    };
    // In the prompt's last chunk, and behind it.
    const AppendedRows behind{.embeddings = appended.embeddings,
                              .adapter = std::make_shared<OperatorsOnly>(appended.adapter)};
    for (const AppendedRows& rows : {appended, behind}) {
      layers = 0;
      const auto logits = model->prefill_by_layers(
          prompt_ids(), {.chunk_size = chunk, .needs = {}, .appended = rows, .on_layer = compare});
      ASSERT_TRUE(logits.ok()) << logits.status();
      EXPECT_EQ(layers, model->config().num_layers);
      EXPECT_LT((*logits - plain->last_logits).abs().max().item<double>(), 1e-4);
    }
  }
}

// Whatever else is recorded is the prompt's alone.
TEST_P(LookaheadByLayers, RowsBehindThePromptChangeNothingThatIsRecordedOfIt) {
  const auto model = load(GetParam());
  const auto policy = make_policy("lookahead_kv", lookahead_params(GetParam())).value();
  const AppendedRows appended = policy->appended_rows(model->config()).value();
  const PrefillNeeds needs{
      .tail_queries = 9, .attention_sums = true, .query_moments = true, .moments_from = 4};
  const auto plain = model->prefill(prompt_ids(), {.needs = needs}).value();
  const AppendedRows behind{.embeddings = appended.embeddings,
                            .adapter = std::make_shared<OperatorsOnly>(appended.adapter)};
  for (const auto& [chunk, rows] :
       {std::pair(50, appended), std::pair(2048, appended), std::pair(50, behind)}) {
    const auto compare = [&](int64_t layer, const PromptState& prompt,
                             const CapturedQueries&) -> absl::Status {
      const LayerState& mine = prompt.layers[layer];
      const LayerState& theirs = plain->layers[layer];
      EXPECT_LT(largest_difference(mine.tail_queries, theirs.tail_queries), 1e-4);
      EXPECT_LT(largest_difference(mine.attention_sums, theirs.attention_sums), 1e-3);
      EXPECT_LT(largest_difference(mine.query_mean, theirs.query_mean), 1e-4);
      EXPECT_LT(largest_difference(mine.query_covariance, theirs.query_covariance), 1e-3);
      return absl::OkStatus();
    };
    const auto logits = model->prefill_by_layers(
        prompt_ids(), {.chunk_size = chunk, .needs = needs, .appended = rows, .on_layer = compare});
    ASSERT_TRUE(logits.ok()) << logits.status();
    EXPECT_LT(largest_difference(*logits, plain->last_logits), 1e-4);
  }
}

// A window shorter than the prompt holds for rows behind it too.
TEST(LayerEviction, RowsBehindThePromptKeepToTheModelsWindow) {
  const auto model = load("tiny-mistral-window");
  const auto plain = model->prefill(prompt_ids(), {}).value();
  auto generator = at::make_generator<at::CPUGeneratorImpl>(6);
  const AppendedRows appended{.embeddings = at::randn({5, model->config().hidden_size}, generator),
                              .adapter = nullptr};
  const CapturedQueries after =
      model->run_rows(*plain, appended.embeddings, /*adapter=*/nullptr).value();
  for (const int64_t chunk : {50, 2048}) {
    const auto compare = [&](int64_t layer, const PromptState&,
                             const CapturedQueries& rows) -> absl::Status {
      EXPECT_LT(largest_difference(rows.queries[layer], after.queries[layer]), 1e-4) << layer;
      EXPECT_LT(largest_difference(rows.keys[layer], after.keys[layer]), 1e-4) << layer;
      return absl::OkStatus();
    };
    ASSERT_TRUE(
        model
            ->prefill_by_layers(
                prompt_ids(),
                {.chunk_size = chunk, .needs = {}, .appended = appended, .on_layer = compare})
            .ok());
  }
}

TEST_P(LookaheadByLayers, ChoosesTheSameEntriesAndGoesOnTheSame) {
  const auto model = load(GetParam());
  for (const char* allocation : {"uniform", "pyramid", "adaptive"}) {
    Json params = lookahead_params(GetParam());
    params["allocation"] = allocation;
    for (const int64_t window : {0, 8}) {
      params["window"] = window;
      const auto policy = make_policy("lookahead_kv", params).value();
      const SharedRun shared = run_shared(*model, *policy, 48);
      for (const int64_t chunk : {60, 2048}) {
        LayerEviction run = run_by_layers(*model, *policy, 48, chunk);
        EXPECT_EQ(run.result.selection.kept, shared.selection.kept)
            << allocation << ", window " << window << ", chunks of " << chunk;
        EXPECT_EQ(reply_of(*model, std::move(run.cache), run.last_logits), shared.reply);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TinyModels, LookaheadByLayers, ::testing::Values("tiny-gqa", "tiny-qwen3"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(LayerEviction, ABudgetThatCoversThePromptKeepsAllAndRunsNoRows) {
  const auto model = load("tiny-gqa");
  const auto policy = make_policy("lookahead_kv", lookahead_params("tiny-gqa")).value();
  const LayerEviction run = run_by_layers(*model, *policy, kPromptLen);
  const auto plain = model->prefill(prompt_ids(), {}).value();
  EXPECT_LT((run.last_logits - plain->last_logits).abs().max().item<double>(), 1e-4);
  EXPECT_EQ(run.cache.prompt_entries(),
            kPromptLen * model->config().num_layers * model->config().num_kv_heads);
}

TEST(LayerEviction, MethodsThatNeedADraftSayThatTheyCannot) {
  const auto model = load("tiny-gqa");
  for (const char* name : {"laq", "speckv", "oracle"}) {
    const auto policy = make_policy(name, nullptr).value();
    const auto run = prefill_and_evict(*model, prompt_ids(), {policy.get(), {64}}, {});
    EXPECT_THAT(message_of(run.status()), HasSubstr(name));
    EXPECT_THAT(message_of(run.status()), HasSubstr("draft"));
    EXPECT_FALSE(policy->select_by_layers({}).ok());
  }
}

TEST(LayerEviction, HoldsOneFullLayerAndCompactOnes) {
  const auto model = load("tiny-gqa");
  const ModelConfig& config = model->config();
  const auto policy = make_policy("streaming_llm", nullptr).value();
  const LayerEviction run = run_by_layers(*model, *policy, 48);
  const int64_t entry = 2 * config.num_kv_heads * config.head_dim * int64_t{sizeof(float)};
  EXPECT_EQ(run.cache.bytes(), config.num_layers * (48 + kMaxNewTokens) * entry);
  EXPECT_EQ(run.peak_cache_bytes, kPromptLen * entry + run.cache.bytes());
}

TEST(LayerEviction, ErrorsOfALayerEndThePrefill) {
  const auto model = load("tiny-gqa");
  int64_t asked = 0;
  const auto refuse = [&](int64_t, const PromptState&, const CapturedQueries&) -> absl::Status {
    ++asked;
    return absl::CancelledError("enough");
  };
  const auto logits =
      model->prefill_by_layers(prompt_ids(), {.needs = {}, .appended = {}, .on_layer = refuse});
  EXPECT_TRUE(absl::IsCancelled(logits.status()));
  EXPECT_EQ(asked, 1);
  const AppendedRows rows{.embeddings = at::zeros({2, model->config().hidden_size}),
                          .adapter = nullptr};
  const AppendedRows wrong{.embeddings = at::zeros({2, 3}), .adapter = nullptr};
  EXPECT_FALSE(model->prefill_by_layers(prompt_ids(), {.needs = {}, .appended = wrong}).ok());
  std::vector<int32_t> long_prompt(static_cast<size_t>(model->config().max_positions), 3);
  EXPECT_FALSE(model->prefill_by_layers(long_prompt, {.needs = {}, .appended = rows}).ok());
}

}  // namespace
}  // namespace kvlab
