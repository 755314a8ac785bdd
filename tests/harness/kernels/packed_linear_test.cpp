#include "harness/kernels/packed_linear.h"

#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

struct Problem {
  ElementType type;
  ElementType y_type;
  int64_t rows;
  int64_t in_features;
  int64_t out_features;
  int64_t x_stride;
  int64_t weight_stride;
  int64_t y_stride;
  bool has_bias;
};

Problem random_problem(std::mt19937_64& random) {
  Problem p;
  p.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  p.y_type = pick_of(random, {ElementType::kFloat32, p.type});
  p.rows = pick_of<int64_t>(random, {1, 2, 3, 4, 6, 7, 12, 13, 20, pick(random, 1, 70)});
  p.in_features = pick_of<int64_t>(random, {32, 96, 191, 193, 385, 576, pick(random, 1, 200)});
  p.out_features = pick(random, 1, 150);
  p.x_stride = p.in_features + pick(random, 0, 5);
  p.weight_stride = p.in_features + pick(random, 0, 5);
  p.y_stride = p.out_features + pick(random, 0, 5);
  p.has_bias = pick(random, 0, 1) == 1;
  return p;
}

Values run(const PackedLinear& linear, const Problem& p, const Values& x) {
  Values y(p.y_type, p.rows * p.y_stride);
  linear.forward(x.data(), p.rows, p.x_stride, y.data(), p.y_stride, p.y_type);
  return y;
}

class PackedLinearTest : public testing::TestWithParam<CpuLevel> {
 protected:
  LevelGuard guard_{GetParam()};
};

TEST_P(PackedLinearTest, AgreesWithDoublePrecisionOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const Problem p = random_problem(random);
    const Values weights = Values::random(p.type, p.out_features * p.weight_stride, random);
    const Values bias = Values::random(p.type, p.out_features, random);
    const Values x = Values::random(p.type, p.rows * p.x_stride, random);
    const PackedLinear linear =
        PackedLinear::pack(p.type, weights.data(), p.out_features, p.in_features, p.weight_stride,
                           p.has_bias ? bias.data() : nullptr);
    const Values y = run(linear, p, x);
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t n = 0; n < p.out_features; ++n) {
        double sum = p.has_bias ? bias.at(n) : 0;
        double magnitude = std::abs(sum);
        for (int64_t k = 0; k < p.in_features; ++k) {
          const double term =
              static_cast<double>(x.at(r * p.x_stride + k)) * weights.at(n * p.weight_stride + k);
          sum += term;
          magnitude += std::abs(term);
        }
        const double rounding = p.y_type == ElementType::kBFloat16 ? std::abs(sum) / 256 : 0;
        ASSERT_NEAR(y.at(r * p.y_stride + n), sum, 2e-6 * magnitude + rounding)
            << "round " << round << " row " << r << " output " << n;
      }
    }
  }
}

TEST_P(PackedLinearTest, LeavesWhatLiesBetweenTheRowsOfTheOutput) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    Problem p = random_problem(random);
    p.y_stride = p.out_features + 3;
    const Values weights = Values::random(p.type, p.out_features * p.weight_stride, random);
    const Values x = Values::random(p.type, p.rows * p.x_stride, random);
    const PackedLinear linear =
        PackedLinear::pack(p.type, weights.data(), p.out_features, p.in_features, p.weight_stride);
    Values y(p.y_type, p.rows * p.y_stride);
    for (int64_t i = 0; i < y.size(); ++i) {
      y.set(i, 77);
    }
    linear.forward(x.data(), p.rows, p.x_stride, y.data(), p.y_stride, p.y_type);
    for (int64_t r = 0; r < p.rows; ++r) {
      for (int64_t n = p.out_features; n < p.y_stride; ++n) {
        ASSERT_EQ(y.at(r * p.y_stride + n), 77);
      }
    }
  }
}

TEST_P(PackedLinearTest, ARowsBitsDependOnNeitherItsCompanyNorTheThreads) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    Problem p = random_problem(random);
    if (round % 10 == 0) {
      p.rows = pick(random, 121, 300);  // several tasks of rows
    }
    const Values weights = Values::random(p.type, p.out_features * p.weight_stride, random);
    const Values x = Values::random(p.type, p.rows * p.x_stride, random);
    const Values bias = Values::random(p.type, p.out_features, random);
    const PackedLinear linear =
        PackedLinear::pack(p.type, weights.data(), p.out_features, p.in_features, p.weight_stride,
                           p.has_bias ? bias.data() : nullptr);
    set_kernel_threads(1);
    const Values alone = run(linear, p, x);
    set_kernel_threads(static_cast<int>(pick(random, 2, 5)));
    const Values together = run(linear, p, x);
    ASSERT_EQ(alone, together);
    for (int64_t r = 0; r < p.rows; ++r) {
      Values single(p.y_type, p.out_features);
      linear.forward(x.from(r * p.x_stride), 1, p.x_stride, single.data(), p.out_features,
                     p.y_type);
      for (int64_t n = 0; n < p.out_features; ++n) {
        ASSERT_EQ(single.at(n), together.at(r * p.y_stride + n));
      }
    }
  }
}

TEST_P(PackedLinearTest, AgreesWithTheReferenceOnManyRows) {
  std::mt19937_64 random(4);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    const Problem p{type, ElementType::kFloat32, 260, 96, 130, 96, 96, 130, false};
    const Values weights = Values::random(type, p.out_features * p.in_features, random);
    const Values x = Values::random(type, p.rows * p.in_features, random);
    const PackedLinear linear =
        PackedLinear::pack(type, weights.data(), p.out_features, p.in_features, p.in_features);
    const Values y = run(linear, p, x);
    Values expected(p.y_type, p.rows * p.y_stride);
    linear.forward_reference(x.data(), p.rows, p.x_stride, expected.data(), p.y_stride, p.y_type);
    for (int64_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y.at(i), expected.at(i), 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, PackedLinearTest, testing::ValuesIn(supported_cpu_levels()),
                         level_test_name);

}  // namespace
}  // namespace kvlab
