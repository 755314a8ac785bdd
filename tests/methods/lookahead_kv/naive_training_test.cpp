// The naive step that training is measured against computes the same loss and gradients.
#include "benchmarks/training/naive_training.h"

#include <gtest/gtest.h>

#include "methods/lookahead_kv/training/trainer.h"
#include "tests/harness/model/golden_file.h"

namespace kvlab {
namespace {

TEST(NaiveTraining, EqualsTheStepThatIsUsed) {
  const auto dir = golden_dir() / "models" / "tiny-gqa";
  const auto base = CausalLm::load(dir, {.dtype = at::kFloat}).value();
  const auto frozen = FrozenModel::load(dir, at::kFloat).value();
  TrainingSample sample;
  for (int32_t i = 0; i < 90; ++i) {
    sample.prompt_ids.push_back((i * 37 + i / 7) % 126 + 2);
  }
  sample.reply_ids = {5, 9, 11, 100, 64, 3};
  const auto gradients = [&](bool naive) {
    const auto adapter =
        LookaheadAdapter::initialise(frozen->config, LookaheadShape::paper(), at::Tensor(), 3);
    adapter->require_gradients();
    const double loss = naive ? naive_sample_loss(*frozen, *adapter, sample, true)
                              : sample_loss(*base, *frozen, *adapter, sample, true, 1, {})->loss;
    std::vector<at::Tensor> all = {at::tensor(loss)};
    for (const auto& [name, tensor] : adapter->named_tensors()) {
      all.push_back(tensor.grad().clone());
    }
    return all;
  };
  const auto used = gradients(false);
  const auto naive = gradients(true);
  ASSERT_EQ(used.size(), naive.size());
  for (size_t i = 0; i < used.size(); ++i) {
    EXPECT_LT((used[i] - naive[i]).abs().max().item<double>(), 1e-5) << i;
  }
}

}  // namespace
}  // namespace kvlab
