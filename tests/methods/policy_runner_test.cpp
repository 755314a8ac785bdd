#include "harness/generation/policy_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "harness/base/status.h"
#include "methods/registry.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kPromptLen = 200;
constexpr int64_t kMaxNewTokens = 12;

class PolicyRunner : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = golden_dir() / "models" / "tiny-gqa";
    auto model = CausalLm::load(dir_, load_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < kPromptLen; ++i) {
      ids.push_back((i * 37 + i / 7) % 126 + 2);
    }
    auto prompt = model_->prefill(ids, {.needs = {.tail_queries = 64,
                                                  .attention_sums = true,
                                                  .query_moments = true,
                                                  .moments_from = 4}});
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    prompt_ = *std::move(prompt);
  }

  std::unique_ptr<EvictionPolicy> policy(const std::string& name, const Json& params = {}) {
    auto made = make_policy(name, params);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  static Json tiny_adapter() {
    return {{"adapter", (golden_dir() / "models" / "tiny-gqa.adapter.safetensors").string()},
            {"accept_unknown_base", true}};
  }

  SelectionSettings settings() {
    return {.max_new_tokens = kMaxNewTokens,
            .stop_ids = model_->config().stop_ids,
            .draft_models = &draft_models_,
            .keep_going = {}};
  }

  ArmReply reply_of(KvCache cache) {
    std::vector<ArmRequest> requests;
    requests.push_back({.cache = std::move(cache),
                        .first_logits = prompt_->last_logits,
                        .max_new_tokens = kMaxNewTokens,
                        .stop_ids = model_->config().stop_ids});
    auto replies = decode_greedy(*model_, std::move(requests));
    EXPECT_TRUE(replies.ok()) << replies.status();
    return std::move(replies->front());
  }

  std::filesystem::path dir_;
  LoadOptions load_{.dtype = at::kFloat};
  std::shared_ptr<CausalLm> model_;
  std::shared_ptr<const PromptState> prompt_;
  DraftModels draft_models_{golden_dir() / "models" / "tiny-gqa", load_};
};

TEST_F(PolicyRunner, RowsBehindThePromptRunOnceForAllBudgets) {
  const auto lookahead = policy("lookahead_kv", tiny_adapter());
  std::vector<SelectionRequest> requests;
  for (const int64_t budget : {16, 32, 300}) {
    requests.push_back({lookahead.get(), {budget}});
  }
  const auto batch = select_entries(*model_, prompt_, requests, settings());
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(batch->arms[i].ok()) << batch->arms[i].status();
    const auto alone = lookahead->select({.prompt = prompt_.get(),
                                          .config = &model_->config(),
                                          .budget = requests[i].budget,
                                          .model = model_.get()});
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(batch->arms[i]->result.selection.kept, alone->selection.kept);
  }
  // Both arms wait for the one run; the last keeps everything and waits for nothing.
  EXPECT_GT(batch->arms[0]->result.cost.query_s, 0);
  EXPECT_GT(batch->arms[1]->result.cost.query_s, 0);
  EXPECT_EQ(batch->arms[2]->result.cost.query_s, 0);
}

TEST_F(PolicyRunner, AnArmDoesNotDependOnItsNeighboursOrTheirOrder) {
  std::vector<std::unique_ptr<EvictionPolicy>> policies;
  policies.push_back(policy("snapkv"));
  policies.push_back(policy("laq"));
  policies.push_back(policy("laq", {{"draft_tokens", 32}, {"stage2_window", 8}}));
  policies.push_back(policy("laq", {{"allocation", "adaptive"}}));
  policies.push_back(policy("speckv"));
  policies.push_back(policy("speckv", {{"draft_layers", 1}, {"draft_tokens", 5}}));
  policies.push_back(policy("oracle"));
  policies.push_back(policy("expected_attention"));
  policies.push_back(policy("lookahead_kv", tiny_adapter()));
  std::vector<SelectionRequest> requests;
  for (const auto& made : policies) {
    requests.push_back({made.get(), {64}});
  }
  const auto together = select_entries(*model_, prompt_, requests, settings());
  ASSERT_TRUE(together.ok()) << together.status();
  std::vector<SelectionRequest> reversed(requests.rbegin(), requests.rend());
  const auto backwards = select_entries(*model_, prompt_, reversed, settings());
  ASSERT_TRUE(backwards.ok()) << backwards.status();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto alone = select_entries(*model_, prompt_, {&requests[i], 1}, settings());
    ASSERT_TRUE(alone.ok()) << alone.status();
    ASSERT_TRUE(alone->arms[0].ok()) << alone->arms[0].status();
    ASSERT_TRUE(together->arms[i].ok()) << together->arms[i].status();
    const SelectedArm& arm = *together->arms[i];
    EXPECT_EQ(arm.result.selection.kept, alone->arms[0]->result.selection.kept) << i;
    EXPECT_EQ(arm.draft_ids, alone->arms[0]->draft_ids) << i;
    const auto& other = backwards->arms[requests.size() - 1 - i];
    EXPECT_EQ(arm.result.selection.kept, other->result.selection.kept) << i;
  }
  EXPECT_TRUE(together->arms[0]->draft_ids.empty());
  EXPECT_LE(together->arms[1]->draft_ids.size(), 8U);
  EXPECT_GT(together->arms[1]->draft_ids.size(), 0U);
  EXPECT_LE(together->arms[5]->draft_ids.size(), 5U);
}

TEST_F(PolicyRunner, TheOraclesReplyIsTheFullCachesReply) {
  const auto oracle = policy("oracle");
  const SelectionRequest request{oracle.get(), {50}};
  const auto batch = select_entries(*model_, prompt_, {&request, 1}, settings());
  ASSERT_TRUE(batch.ok()) << batch.status();
  ASSERT_TRUE(batch->full_reply.has_value());
  const ArmReply plain = reply_of(KvCache::full(prompt_, kMaxNewTokens));
  EXPECT_EQ(batch->full_reply->token_ids, plain.token_ids);
  EXPECT_EQ(batch->full_reply->stop_reason, plain.stop_reason);
  std::vector<int32_t> without_stop = plain.token_ids;
  if (plain.stop_reason == StopReason::kStopId && without_stop.size() > 1) {
    without_stop.pop_back();
  }
  EXPECT_EQ(batch->arms[0]->draft_ids, without_stop);
}

TEST_F(PolicyRunner, APartOfTheOraclesReplyIsAPartOfTheSameReply) {
  const auto whole = policy("oracle");
  const auto part = policy("oracle", {{"reply_tokens", 2}});
  const auto beyond = policy("oracle", {{"reply_tokens", 3 * kMaxNewTokens}});
  SelectionSettings waiting = settings();
  waiting.min_new_tokens = kMaxNewTokens;  // a reply that may not stop early
  const std::vector<SelectionRequest> requests = {
      {whole.get(), {50}}, {part.get(), {50}}, {beyond.get(), {50}}};
  const auto batch = select_entries(*model_, prompt_, requests, waiting);
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto kept = [&](size_t i) { return batch->arms[i]->result.selection.kept; };
  EXPECT_EQ(batch->arms[1]->draft_ids, batch->arms[0]->draft_ids);
  EXPECT_EQ(kept(2), kept(0));
  EXPECT_NE(kept(1), kept(0));
}

TEST_F(PolicyRunner, TheFullReplyIsCutWhereAnotherDraftIsLonger) {
  const auto oracle = policy("oracle");
  const auto longer = policy("speckv", {{"draft_tokens", 3 * kMaxNewTokens}});
  const std::vector<SelectionRequest> requests = {{longer.get(), {50}}, {oracle.get(), {50}}};
  const auto batch = select_entries(*model_, prompt_, requests, settings());
  ASSERT_TRUE(batch.ok() && batch->full_reply.has_value());
  EXPECT_EQ(batch->full_reply->token_ids,
            reply_of(KvCache::full(prompt_, kMaxNewTokens)).token_ids);
}

TEST_F(PolicyRunner, AsksNoDraftWhereTheBudgetCoversThePrompt) {
  const auto laq = policy("laq");
  const SelectionRequest request{laq.get(), {kPromptLen}};
  const auto batch = select_entries(*model_, prompt_, {&request, 1}, settings());
  ASSERT_TRUE(batch.ok() && batch->arms[0].ok());
  EXPECT_TRUE(batch->arms[0]->draft_ids.empty());
  EXPECT_FALSE(batch->full_reply.has_value());
}

TEST_F(PolicyRunner, EveryMethodAtACoveringBudgetGivesTheFullCachesTokens) {
  const std::vector<int32_t> full = reply_of(KvCache::full(prompt_, kMaxNewTokens)).token_ids;
  for (const MethodInfo& info : list_methods()) {
    const auto made = make_policy(info.name, nullptr);
    if (!made.ok()) {
      continue;  // an adapter that is not there
    }
    const SelectionRequest request{made->get(), {kPromptLen + 5}};
    const auto batch = select_entries(*model_, prompt_, {&request, 1}, settings());
    ASSERT_TRUE(batch.ok() && batch->arms[0].ok()) << info.name;
    const KvCache cache =
        KvCache::compact(*prompt_, batch->arms[0]->result.selection, kMaxNewTokens);
    EXPECT_EQ(cache.next_position(), kPromptLen);
    EXPECT_EQ(reply_of(KvCache::compact(*prompt_, batch->arms[0]->result.selection, kMaxNewTokens))
                  .token_ids,
              full)
        << info.name;
  }
}

TEST_F(PolicyRunner, DraftsLeaveNothingBehind) {
  std::vector<at::Tensor> before;
  for (const LayerState& layer : prompt_->layers) {
    before.push_back(layer.keys.clone());
    before.push_back(layer.values.clone());
  }
  const auto laq = policy("laq");
  const auto speckv = policy("speckv", {{"draft_layers", 2}});
  const std::vector<SelectionRequest> requests = {{laq.get(), {64}}, {speckv.get(), {64}}};
  const auto batch = select_entries(*model_, prompt_, requests, settings());
  ASSERT_TRUE(batch.ok());
  for (size_t layer = 0; layer < prompt_->layers.size(); ++layer) {
    EXPECT_TRUE(before[2 * layer].equal(prompt_->layers[layer].keys));
    EXPECT_TRUE(before[2 * layer + 1].equal(prompt_->layers[layer].values));
  }
  for (const auto& arm : batch->arms) {
    const KvCache cache = KvCache::compact(*prompt_, arm->result.selection, kMaxNewTokens);
    EXPECT_EQ(cache.next_position(), kPromptLen);
    EXPECT_EQ(cache.num_new(), 0);
    EXPECT_EQ(cache.prompt_entries(), arm->result.selection.total_entries());
  }
}

TEST_F(PolicyRunner, ADraftModelMaySpeakForItself) {
  // The same checkpoint as another model's folder writes the same draft as the model itself.
  const auto own = policy("speckv");
  const auto other = policy("speckv", {{"draft_model", dir_.string()}});
  EXPECT_TRUE(other->check(model_->config(), Budget{64}).ok());
  const std::vector<SelectionRequest> requests = {{own.get(), {64}}, {other.get(), {64}}};
  const auto batch = select_entries(*model_, prompt_, requests, settings());
  ASSERT_TRUE(batch.ok() && batch->arms[0].ok() && batch->arms[1].ok());
  EXPECT_EQ(batch->arms[0]->draft_ids, batch->arms[1]->draft_ids);
  EXPECT_EQ(batch->arms[0]->result.selection.kept, batch->arms[1]->result.selection.kept);
  EXPECT_EQ(own->label(), "speckv (draft: the model itself)");
  EXPECT_EQ(policy("speckv", {{"draft_layers", 2}})->label(), "speckv (draft: its first 2 layers)");
}

TEST_F(PolicyRunner, RefusesADraftModelOfAnotherVocabulary) {
  const auto speckv =
      policy("speckv", {{"draft_model", (golden_dir() / "models" / "tiny-llama3").string()}});
  ModelConfig target = model_->config();
  target.vocab_size = 4321;
  const std::string message = message_of(speckv->check(target, Budget{64}));
  EXPECT_THAT(message, HasSubstr("4321"));
  const auto draft = ModelConfig::load(golden_dir() / "models" / "tiny-llama3");
  ASSERT_TRUE(draft.ok());
  EXPECT_THAT(message, HasSubstr(std::to_string(draft->vocab_size)));
  const auto layers = policy("speckv", {{"draft_layers", 9}});
  EXPECT_THAT(message_of(layers->check(model_->config(), Budget{64})), HasSubstr("9"));
  const auto missing = policy("speckv", {{"draft_model", "/nowhere"}});
  EXPECT_FALSE(missing->check(model_->config(), Budget{64}).ok());
}

TEST_F(PolicyRunner, OneArmsErrorLeavesTheOthers) {
  const auto broken = policy("speckv", {{"draft_model", "/nowhere"}});
  const auto fine = policy("snapkv");
  const std::vector<SelectionRequest> requests = {
      {broken.get(), {64}}, {fine.get(), {8}}, {fine.get(), {64}}};
  const auto batch = select_entries(*model_, prompt_, requests, settings());
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_FALSE(batch->arms[0].ok());
  EXPECT_FALSE(batch->arms[1].ok());
  EXPECT_TRUE(batch->arms[2].ok());
}

TEST_F(PolicyRunner, CanBeInterrupted) {
  const auto oracle = policy("oracle");
  const SelectionRequest request{oracle.get(), {64}};
  SelectionSettings stopping = settings();
  stopping.keep_going = [] { return false; };
  const auto batch = select_entries(*model_, prompt_, {&request, 1}, stopping);
  EXPECT_TRUE(absl::IsCancelled(batch.status()));
}

TEST_F(PolicyRunner, NeedsAreTheUnionAndConflictsAreNamed) {
  const auto snapkv = policy("snapkv");
  const auto wide = policy("snapkv", {{"query_window", 64}});
  const auto h2o = policy("h2o");
  const auto expected = policy("expected_attention");
  const auto other = policy("expected_attention", {{"sinks", 2}});
  const std::vector<const EvictionPolicy*> fine = {snapkv.get(), wide.get(), h2o.get(),
                                                   expected.get()};
  const auto needs = combined_needs(fine);
  ASSERT_TRUE(needs.ok());
  EXPECT_EQ(needs->tail_queries, 64);
  EXPECT_TRUE(needs->attention_sums && needs->query_moments);
  EXPECT_EQ(needs->moments_from, 4);
  const std::vector<const EvictionPolicy*> conflict = {expected.get(), other.get()};
  EXPECT_THAT(message_of(combined_needs(conflict).status()), HasSubstr("expected_attention"));
}

}  // namespace
}  // namespace kvlab
