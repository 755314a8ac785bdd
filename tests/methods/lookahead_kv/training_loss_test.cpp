// The numbers training minimises, against sums written out.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "methods/lookahead_kv/training/attention_target.h"

namespace kvlab {
namespace {

// KL of the entries from `first` on, both sides divided by their sums there.
double plain_divergence(const std::vector<double>& target, const std::vector<double>& scores,
                        size_t first) {
  double target_sum = 0;
  double score_sum = 0;
  for (size_t i = first; i < target.size(); ++i) {
    target_sum += target[i];
    score_sum += scores[i];
  }
  double divergence = 0;
  for (size_t i = first; i < target.size(); ++i) {
    const double p = target[i] / target_sum;
    divergence += p * std::log(p / (scores[i] / score_sum));
  }
  return divergence;
}

at::Tensor one_head(const std::vector<double>& x) {
  return at::tensor(x, at::kDouble).unsqueeze(0);
}

TEST(TrainingLoss, ContentWeightAddsTheDivergenceBehindTheSinks) {
  const std::vector<double> target = {0.60, 0.02, 0.01, 0.07, 0.10, 0.15, 0.05};
  const std::vector<double> scores = {0.30, 0.01, 0.02, 0.03, 0.06, 0.02, 0.04};
  const double paper = plain_divergence(target, scores, 0);
  const double content = plain_divergence(target, scores, kSinkEntries);
  const auto loss = [&](double weight) {
    return training_divergence(one_head(target), one_head(scores), {.content_weight = weight})
        .item<double>();
  };
  EXPECT_NEAR(loss(0), paper, 1e-12);
  EXPECT_NEAR(loss(1), paper + content, 1e-12);
  EXPECT_NEAR(loss(2.5), paper + 2.5 * content, 1e-12);
}

TEST(TrainingLoss, APromptOfSinksAloneHasThePapersLoss) {
  const std::vector<double> target = {0.5, 0.2, 0.2, 0.1};
  const std::vector<double> scores = {0.2, 0.2, 0.2, 0.1};
  const at::Tensor loss =
      training_divergence(one_head(target), one_head(scores), {.content_weight = 3});
  EXPECT_NEAR(loss.item<double>(), plain_divergence(target, scores, 0), 1e-12);
}

TEST(TrainingLoss, AHeadThatSeesNothingBehindTheSinksAddsNothing) {
  const at::Tensor target = one_head({1, 0, 0, 0, 0, 0});
  const at::Tensor scores = one_head({0.5, 0.1, 0.1, 0.1, 0.1, 0.1});
  const at::Tensor loss = training_divergence(target, scores, {.content_weight = 3});
  EXPECT_NEAR(loss.item<double>(), -std::log(0.5), 1e-12);
}

TEST(TrainingLoss, HeadPowerRaisesEveryHeadByItself) {
  const std::vector<double> target = {0.1, 0.2, 0.3, 0.1, 0.2, 0.1};
  const std::vector<double> near = {0.1, 0.2, 0.2, 0.2, 0.2, 0.1};
  const std::vector<double> far = {0.9, 0.01, 0.01, 0.01, 0.01, 0.01};
  const auto both = [](const std::vector<double>& a, const std::vector<double>& b) {
    return at::cat({one_head(a), one_head(b)});
  };
  const at::Tensor loss =
      training_divergence(both(target, target), both(near, far), {.head_power = 2});
  EXPECT_NEAR(loss.item<double>(),
              std::pow(plain_divergence(target, near, 0), 2) +
                  std::pow(plain_divergence(target, far, 0), 2),
              1e-12);
}

TEST(TrainingLoss, AHeadThatIsRightHasAGradientOfZeroAtAnyPower) {
  at::Tensor scores = one_head({0.2, 0.2, 0.2, 0.2, 0.1, 0.1}).set_requires_grad(true);
  training_divergence(scores.detach(), scores, {.content_weight = 1, .head_power = 1.5}).backward();
  EXPECT_LT(scores.grad().abs().max().item<double>(), 1e-7);
}

}  // namespace
}  // namespace kvlab
