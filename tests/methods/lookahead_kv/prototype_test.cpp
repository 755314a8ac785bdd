// The inference path against a prototype's scores on SmolLM2, float32.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "harness/base/status.h"
#include "harness/generation/layer_eviction.h"
#include "methods/lookahead_kv/lookahead_source.h"
#include "methods/registry.h"
#include "methods/scorers.h"
#include "tests/harness/model/golden_file.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

std::set<int64_t> best(const float* scores, int64_t n, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  return {order.begin(), order.begin() + count};
}

// A case of the golden file and what was found in it.
class Comparison {
 public:
  Comparison(const GoldenFile& golden, const std::string& which, int64_t heads)
      : ids_(golden.get<int32_t>(which + ".prompt_ids")),
        expected_(golden.get<float>(which + ".scores")),
        heads_(heads) {}

  const std::vector<int32_t>& ids() const { return ids_; }

  void add(int64_t layer, const at::Tensor& scores) {
    const at::Tensor got = scores.contiguous();
    const auto n = static_cast<int64_t>(ids_.size());
    for (int64_t head = 0; head < heads_; ++head) {
      const float* mine = got.const_data_ptr<float>() + head * n;
      const float* theirs = expected_.data() + (layer * heads_ + head) * n;
      for (int64_t i = 0; i < n; ++i) {
        largest_ = std::max(largest_, std::abs(static_cast<double>(mine[i]) - theirs[i]));
      }
      const auto a = best(mine, n, 64);
      const auto b = best(theirs, n, 64);
      for (const int64_t i : a) {
        // A swap of entries whose scores are equal to within the noise is a tie.
        const double cut = theirs[*std::min_element(
            b.begin(), b.end(), [&](int64_t x, int64_t y) { return theirs[x] < theirs[y]; })];
        different_ += !b.contains(i) && std::abs(theirs[i] - cut) > 1e-6 ? 1 : 0;
      }
    }
    ++layers_;
  }

  void expect_equal(int64_t layers) const {
    EXPECT_EQ(layers_, layers);
    EXPECT_LT(largest_, 1e-5);
    EXPECT_EQ(different_, 0);
    ::testing::Test::RecordProperty("largest_error", std::to_string(largest_));
  }

 private:
  std::vector<int32_t> ids_;
  std::vector<float> expected_;
  int64_t heads_;
  int64_t layers_ = 0;
  double largest_ = 0;
  int64_t different_ = 0;
};

class LookaheadPrototype : public ::testing::Test {
 protected:
  void SetUp() override {
    KVLAB_SHARED_DATA_OR_SKIP(shared);
    KVLAB_DEFAULT_MODEL_OR_SKIP(model_dir);
    folder_ = shared / "lookahead_prototype";
    golden_ = std::make_unique<GoldenFile>(folder_ / "golden_scores.safetensors");
    model_ = CausalLm::load(model_dir, {.dtype = at::kFloat}).value();
    scorer_ =
        make_attention_scorer(make_lookahead_source({.adapter = folder_ / "adapter.safetensors",
                                                     .accept_unknown_base = true}),
                              RowReduction::kMean);
  }

  std::filesystem::path folder_;
  std::unique_ptr<GoldenFile> golden_;
  std::shared_ptr<CausalLm> model_;
  std::unique_ptr<Scorer> scorer_;
};

TEST_F(LookaheadPrototype, ScoresEqualWithin1e5AndSoDoTheBestEntries) {
  for (const std::string& which : golden_->cases()) {
    Comparison comparison(*golden_, which, model_->config().num_heads);
    const auto prompt = model_->prefill(comparison.ids(), {}).value();
    const SelectionInput input{
        .prompt = prompt.get(), .config = &model_->config(), .budget = {64}, .model = model_.get()};
    const LayerScores scores = scorer_->prepare(input).value();
    for (int64_t layer = 0; layer < model_->config().num_layers; ++layer) {
      comparison.add(layer, scores(layer).value());
    }
    comparison.expect_equal(model_->config().num_layers);
  }
}

TEST_F(LookaheadPrototype, SoDoTheScoresOfOnePrefill) {
  for (const std::string& which : golden_->cases()) {
    Comparison comparison(*golden_, which, model_->config().num_heads);
    LayerPrefillOptions options;
    options.appended = scorer_->appended_rows(model_->config()).value();
    LayerScores scores;
    options.on_layer = [&](int64_t layer, const PromptState& prompt,
                           const CapturedQueries& appended) -> absl::Status {
      if (!scores) {
        const SelectionInput input{
            .prompt = &prompt, .config = &model_->config(), .budget = {64}, .appended = &appended};
        scores = scorer_->prepare(input).value();
      }
      comparison.add(layer, scores(layer).value());
      return absl::OkStatus();
    };
    ASSERT_TRUE(model_->prefill_by_layers(comparison.ids(), options).ok());
    comparison.expect_equal(model_->config().num_layers);
  }
}

// The two forms on a long prompt: the same entries but for ties, and the same reply.
TEST_F(LookaheadPrototype, BothFormsGoOnTheSame) {
  constexpr int64_t kNewTokens = 24;
  const auto policy =
      make_policy("lookahead_kv", {{"adapter", (folder_ / "adapter.safetensors").string()},
                                   {"accept_unknown_base", true}})
          .value();
  const auto ids = golden_->get<int32_t>(golden_->cases().back() + ".prompt_ids");
  const std::shared_ptr<const PromptState> prompt = model_->prefill(ids, {}).value();
  const SelectionRequest request{policy.get(), {128}};
  const Selection shared =
      select_entries(*model_, prompt, {&request, 1}, {}).value().arms[0].value().result.selection;
  LayerEviction run =
      prefill_and_evict(*model_, ids, request, {.max_new_tokens = kNewTokens}).value();
  int64_t different = 0;
  for (size_t layer = 0; layer < shared.kept.size(); ++layer) {
    for (size_t head = 0; head < shared.kept[layer].size(); ++head) {
      const auto& mine = run.result.selection.kept[layer][head];
      const auto& theirs = shared.kept[layer][head];
      std::vector<int32_t> only;
      std::set_difference(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                          std::back_inserter(only));
      different += static_cast<int64_t>(only.size());
    }
  }
  EXPECT_LE(different, shared.total_entries() / 1000);
  EXPECT_LT((run.last_logits - prompt->last_logits).abs().max().item<double>(), 1e-3);
  std::vector<ArmRequest> requests;
  requests.push_back({.cache = KvCache::compact(*prompt, shared, kNewTokens),
                      .first_logits = prompt->last_logits,
                      .max_new_tokens = kNewTokens});
  requests.push_back({.cache = std::move(run.cache),
                      .first_logits = run.last_logits,
                      .max_new_tokens = kNewTokens});
  const auto replies = decode_greedy(*model_, std::move(requests)).value();
  EXPECT_EQ(replies[0].token_ids, replies[1].token_ids);
}

}  // namespace
}  // namespace kvlab
