#include "harness/kernels/low_rank_update.h"

#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

class LowRankUpdateTest : public testing::TestWithParam<CpuLevel> {
 protected:
  LevelGuard guard_{GetParam()};
};

struct Problem {
  ElementType type;
  int64_t rows;
  int64_t rank;
  int64_t in_features;
  int64_t out_features;
  int64_t x_stride;
  int64_t y_stride;
  float scale;
};

Problem random_problem(std::mt19937_64& random) {
  Problem p;
  p.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  p.rows = pick_of<int64_t>(random, {1, 2, 11, 12, 13, 32, 64, pick(random, 1, 70)});
  p.rank = pick_of<int64_t>(random, {1, 2, 8, 16, pick(random, 1, 40)});
  p.in_features = pick(random, 1, 200);
  p.out_features = pick(random, 1, 150);
  p.x_stride = p.in_features + pick(random, 0, 5);
  p.y_stride = p.out_features + pick(random, 0, 5);
  p.scale = pick_of(random, {1.0F, 4.0F, 0.3F});
  return p;
}

struct Update {
  Values a;
  Values b;
  LowRankUpdate packed;
};

Update random_update(const Problem& p, std::mt19937_64& random) {
  Update update{Values::random(ElementType::kFloat32, p.rank * p.in_features, random),
                Values::random(ElementType::kFloat32, p.out_features * p.rank, random),
                {}};
  update.packed = LowRankUpdate::pack(static_cast<const float*>(update.a.data()),
                                      static_cast<const float*>(update.b.data()), p.rank,
                                      p.out_features, p.in_features, p.scale);
  return update;
}

TEST_P(LowRankUpdateTest, AgreesWithDoublePrecisionOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    const Problem p = random_problem(random);
    const Update update = random_update(p, random);
    const Values x = Values::random(p.type, p.rows * p.x_stride, random);
    const Values before = Values::random(p.type, p.rows * p.y_stride, random);
    Values y = before;
    update.packed.add_to(p.type, x.data(), p.rows, p.x_stride, y.data(), p.y_stride);
    for (int64_t r = 0; r < p.rows; ++r) {
      std::vector<double> inner(p.rank);
      std::vector<double> inner_size(p.rank);
      for (int64_t k = 0; k < p.rank; ++k) {
        for (int64_t i = 0; i < p.in_features; ++i) {
          const double term =
              static_cast<double>(x.at(r * p.x_stride + i)) * update.a.at(k * p.in_features + i);
          inner[k] += term;
          inner_size[k] += std::abs(term);
        }
      }
      for (int64_t n = 0; n < p.y_stride; ++n) {
        const int64_t at = r * p.y_stride + n;
        if (n >= p.out_features) {  // between the rows
          ASSERT_EQ(y.at(at), before.at(at));
          continue;
        }
        double sum = before.at(at);
        double magnitude = std::abs(sum);
        for (int64_t k = 0; k < p.rank; ++k) {
          const double b = static_cast<double>(update.b.at(n * p.rank + k)) * p.scale;
          sum += inner[k] * b;
          magnitude += inner_size[k] * std::abs(b);
        }
        const double rounding = p.type == ElementType::kBFloat16 ? std::abs(sum) / 256 : 0;
        ASSERT_NEAR(y.at(at), sum, 2e-6 * magnitude + rounding)
            << "round " << round << " row " << r << " output " << n;
      }
    }
  }
}

TEST_P(LowRankUpdateTest, ARowDoesNotDependOnTheOthersOrTheThreads) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 100; ++round) {
    const Problem p = random_problem(random);
    const Update update = random_update(p, random);
    const Values x = Values::random(p.type, p.rows * p.x_stride, random);
    const Values before = Values::random(p.type, p.rows * p.y_stride, random);
    Values together = before;
    update.packed.add_to(p.type, x.data(), p.rows, p.x_stride, together.data(), p.y_stride);
    set_kernel_threads(1);
    Values alone = before;
    for (int64_t r = 0; r < p.rows; ++r) {
      update.packed.add_to(p.type, x.from(r * p.x_stride), 1, p.x_stride,
                           alone.from(r * p.y_stride), p.y_stride);
    }
    set_kernel_threads(static_cast<int>(pick(random, 2, 5)));
    ASSERT_TRUE(together == alone) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, LowRankUpdateTest, testing::ValuesIn(supported_cpu_levels()),
                         level_test_name);

}  // namespace
}  // namespace kvlab
