// The inference path against a prototype's scores on SmolLM2, float32.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "harness/base/status.h"
#include "methods/lookahead_kv/lookahead_source.h"
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

TEST(LookaheadPrototype, ScoresEqualWithin1e5AndSoDoTheBestEntries) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  KVLAB_DEFAULT_MODEL_OR_SKIP(model_dir);
  const auto folder = shared / "lookahead_prototype";
  const GoldenFile golden(folder / "golden_scores.safetensors");
  const auto model = CausalLm::load(model_dir, {.dtype = at::kFloat}).value();
  const auto scorer =
      make_attention_scorer(make_lookahead_source({.adapter = folder / "adapter.safetensors",
                                                   .accept_unknown_base = true}),
                            RowReduction::kMean);
  double largest = 0;
  int64_t different = 0;
  for (const std::string& which : golden.cases()) {
    const auto ids = golden.get<int32_t>(which + ".prompt_ids");
    const auto expected = golden.get<float>(which + ".scores");
    const auto prompt = model->prefill(ids, {}).value();
    const SelectionInput input{
        .prompt = prompt.get(), .config = &model->config(), .budget = {64}, .model = model.get()};
    const LayerScores scores = scorer->prepare(input).value();
    const auto n = static_cast<int64_t>(ids.size());
    const int64_t heads = model->config().num_heads;
    for (int64_t layer = 0; layer < model->config().num_layers; ++layer) {
      const at::Tensor got = scores(layer).value().contiguous();
      for (int64_t head = 0; head < heads; ++head) {
        const float* mine = got.const_data_ptr<float>() + head * n;
        const float* theirs = expected.data() + (layer * heads + head) * n;
        for (int64_t i = 0; i < n; ++i) {
          largest = std::max(largest, std::abs(static_cast<double>(mine[i]) - theirs[i]));
        }
        const auto a = best(mine, n, 64);
        const auto b = best(theirs, n, 64);
        for (const int64_t i : a) {
          // A swap of entries whose scores are equal to within the noise is a tie.
          const double cut = theirs[*std::min_element(
              b.begin(), b.end(), [&](int64_t x, int64_t y) { return theirs[x] < theirs[y]; })];
          different += !b.contains(i) && std::abs(theirs[i] - cut) > 1e-6 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_LT(largest, 1e-5);
  EXPECT_EQ(different, 0);
  RecordProperty("largest_error", std::to_string(largest));
}

}  // namespace
}  // namespace kvlab
