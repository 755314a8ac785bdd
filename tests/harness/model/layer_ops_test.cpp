// The fused row kernels against the plain tensor operations, over shapes, types and CPU levels.
#include "harness/model/layer_ops.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness/kernels/cpu_level.h"
#include "harness/model/rotary.h"

namespace kvlab {
namespace {

at::Tensor random_tensor(std::vector<int64_t> shape, at::ScalarType type, int64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator).to(type);
}

// Rounding of the element type, relative to values of order 1 to 10.
double tolerance(at::ScalarType type) { return type == at::kFloat ? 1e-5 : 4e-2; }

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

class LayerOps : public testing::TestWithParam<std::tuple<CpuLevel, at::ScalarType>> {
 protected:
  void SetUp() override {
    before_ = cpu_level();
    set_cpu_level(std::get<0>(GetParam()));
  }
  void TearDown() override { set_cpu_level(before_); }
  at::ScalarType type() const { return std::get<1>(GetParam()); }

 private:
  CpuLevel before_ = CpuLevel::kReference;
};

TEST_P(LayerOps, RmsNormEqualsPlainOperationsInDouble) {
  int64_t seed = 0;
  for (const int64_t size : {1, 7, 16, 64, 576, 1000}) {
    for (const int64_t rows : {1, 3, 65}) {
      const at::Tensor x = random_tensor({rows, size}, type(), ++seed);
      const at::Tensor weight = random_tensor({size}, type(), ++seed);
      const at::Tensor plain = rms_norm(x.to(at::kDouble), weight.to(at::kDouble), 1e-5);
      EXPECT_LT(largest_difference(rms_norm(x, weight, 1e-5), plain), tolerance(type()))
          << rows << " x " << size;
    }
  }
}

TEST_P(LayerOps, AddRmsNormLeavesTheSumBehind) {
  const at::Tensor x = random_tensor({5, 96}, type(), 1);
  const at::Tensor delta = random_tensor({5, 96}, type(), 2);
  const at::Tensor weight = random_tensor({96}, type(), 3);
  const at::Tensor sum = x + delta;
  const NormedSum result = add_rms_norm(x.clone(), delta, weight, 1e-6);
  EXPECT_TRUE(at::equal(result.sum, sum));
  EXPECT_TRUE(at::equal(result.normed, rms_norm(sum, weight, 1e-6)));
}

TEST_P(LayerOps, SiluMulEqualsPlainOperationsAtAnyWidthEvenForHugeValues) {
  for (const int64_t size : {4, 130, 255, 256, 257, 1536}) {
    at::Tensor gate = random_tensor({9, size}, type(), 4) * 20;
    gate[0][0] = 1e30;
    gate[0][1] = -1e30;
    gate[0][2] = 0;
    gate[0][3] = -90;
    const at::Tensor up = random_tensor({9, size}, type(), 5);
    const at::Tensor plain = silu_mul(gate.to(at::kDouble), up.to(at::kDouble)).to(type());
    const at::Tensor fused = silu_mul(gate, up);
    const at::Tensor error =
        (fused - plain).to(at::kDouble).abs() / (plain.to(at::kDouble).abs() + 1.0);
    EXPECT_LT(error.max().item<double>(), type() == at::kFloat ? 1e-6 : 1e-2) << size;
  }
}

TEST_P(LayerOps, RotateEqualsPlainOperationsAndWorksInPlace) {
  for (const int64_t head_dim : {2, 16, 80, 128}) {
    for (const bool norm : {false, true}) {
      const at::Tensor x = random_tensor({3, 5, head_dim}, type(), head_dim);
      const at::Tensor angles = random_tensor({5, head_dim / 2}, at::kFloat, 9);
      const at::Tensor cos = at::cos(angles);
      const at::Tensor sin = at::sin(angles);
      const at::Tensor weight =
          norm ? random_tensor({head_dim}, type(), head_dim + 1) : at::Tensor();
      const at::Tensor wide_weight = norm ? weight.to(at::kDouble) : at::Tensor();
      const at::Tensor normed = rotate(x.to(at::kDouble), {}, {}, wide_weight, 1e-6).to(type());
      const at::Tensor plain = rotate(normed.to(at::kDouble), cos, sin);
      const at::Tensor out = at::empty_like(x);
      rotate_into(x, cos, sin, weight, 1e-6, out);
      EXPECT_LT(largest_difference(out, plain), tolerance(type())) << head_dim << " " << norm;
      const at::Tensor in_place = x.clone();
      rotate_into(in_place, cos, sin, weight, 1e-6, in_place);
      EXPECT_TRUE(at::equal(in_place, out));
      at::Tensor in_two = x.clone();
      rotate_into(in_two, {}, {}, weight, 1e-6, in_two);
      rotate_into(in_two, cos, sin, {}, 0, in_two);
      EXPECT_TRUE(at::equal(in_two, out));
    }
  }
}

TEST_P(LayerOps, ARowDoesNotDependOnTheOthers) {
  const at::Tensor x = random_tensor({130, 576}, type(), 11);
  const at::Tensor weight = random_tensor({576}, type(), 12);
  const at::Tensor all = rms_norm(x, weight, 1e-5);
  const at::Tensor gated = silu_mul(x, all);
  for (const int64_t row : {0, 1, 64, 129}) {
    const at::Tensor one = x.narrow(0, row, 1).contiguous();
    EXPECT_TRUE(at::equal(rms_norm(one, weight, 1e-5), all.narrow(0, row, 1)));
    EXPECT_TRUE(
        at::equal(silu_mul(one, all.narrow(0, row, 1).contiguous()), gated.narrow(0, row, 1)));
  }
}

std::vector<CpuLevel> vector_levels() { return supported_cpu_levels(); }

INSTANTIATE_TEST_SUITE_P(Levels, LayerOps,
                         testing::Combine(testing::ValuesIn(vector_levels()),
                                          testing::Values(at::kFloat, at::kBFloat16)));

TEST(LayerOpsGradients, PlainOperationsDifferentiateInDouble) {
  const at::Tensor x = random_tensor({2, 3, 8}, at::kDouble, 1).requires_grad_();
  const at::Tensor weight = random_tensor({8}, at::kDouble, 2).requires_grad_();
  const at::Tensor cos = at::cos(random_tensor({3, 4}, at::kDouble, 3));
  const at::Tensor sin = at::sin(random_tensor({3, 4}, at::kDouble, 3));
  const auto value = [&](const at::Tensor& input) {
    const at::Tensor y = rotate(rms_norm(input, weight, 1e-5), cos, sin);
    return (silu_mul(y, input) * y).sum();
  };
  value(x).backward();
  const at::Tensor gradient = x.grad();
  const c10::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  const at::Tensor flat = x.detach().clone().view(-1);
  for (int64_t i = 0; i < flat.numel(); i += 5) {
    const at::Tensor up = flat.clone();
    up[i] += kStep;
    const at::Tensor down = flat.clone();
    down[i] -= kStep;
    const double slope = (value(up.view_as(x)) - value(down.view_as(x))).item<double>();
    EXPECT_NEAR(gradient.view(-1)[i].item<double>(), slope / (2 * kStep), 1e-5);
  }
}

}  // namespace
}  // namespace kvlab
