#include "methods/attention_mass/attention_mass.h"

#include <algorithm>

#include "tests/harness/kernels/kernel_test_util.h"
#include "tests/methods/attention_mass/random_problem.h"

namespace kvlab {
namespace {

using Problem = MassProblem;

Problem random_problem(std::mt19937_64& random, int64_t longest, int64_t num_keys = 0) {
  return random_mass_problem(random,
                             {.group_sizes = {1, 2, 3, 4, 5, 6, 7, 8},
                              .head_dims = {64, 80, 96, 128, 256, 16, 40, 1, 3, 7, 12, 33, 250},
                              .row_counts = {1, 2, 8, 12, 13, 24, 32},
                              .key_counts = {1, 15, 16, 17, 31, 32, 33},
                              .longest = longest,
                              .num_keys = num_keys});
}

std::vector<double> expected_mass(const Problem& p, int64_t head) {
  const AttentionMassArgs& a = p.args;
  const int64_t kv_head = head / (a.num_heads / a.num_kv_heads);
  std::vector<double> mass(a.num_keys);
  for (int64_t row = 0; row < a.num_rows; ++row) {
    const auto score = [&](const Values& values, const HeadRows& rows, int64_t key) {
      double dot = 0;
      for (int64_t d = 0; d < a.head_dim; ++d) {
        dot += static_cast<double>(
                   p.queries.at(head * a.queries.head_stride + row * a.queries.row_stride + d)) *
               values.at(kv_head * rows.head_stride + key * rows.row_stride + d);
      }
      return dot * a.scale;
    };
    const int64_t first = p.first_visible.empty() ? 0 : p.first_visible[row];
    const int64_t last = p.visible.empty() ? a.num_keys : p.visible[row];
    const int64_t extra = p.extra_visible.empty() ? a.num_extra_keys : p.extra_visible[row];
    std::vector<double> weights;
    double sum = 0;
    for (int64_t key = first; key < last; ++key) {
      weights.push_back(std::exp(score(p.keys, a.keys, key)));
      sum += weights.back();
    }
    for (int64_t key = 0; key < extra; ++key) {
      sum += std::exp(score(p.extra_keys, a.extra_keys, key));
    }
    for (int64_t key = first; key < last; ++key) {
      const double weight = weights[key - first] / sum;
      mass[key] =
          a.reduction == RowReduction::kMax ? std::max(mass[key], weight) : mass[key] + weight;
    }
  }
  if (a.reduction == RowReduction::kMean) {
    for (double& value : mass) {
      value /= static_cast<double>(a.num_rows);
    }
  }
  return mass;
}

class AttentionMassTest : public testing::TestWithParam<CpuLevel> {
 protected:
  LevelGuard guard_{GetParam()};
};

TEST_P(AttentionMassTest, AgreesWithDoublePrecisionOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 700; ++round) {
    Problem p = random_problem(random, 130);
    p.bind();
    attention_mass(p.args);
    const int64_t head = pick(random, 0, p.args.num_heads - 1);
    const std::vector<double> expected = expected_mass(p, head);
    for (int64_t key = 0; key < p.args.num_keys; ++key) {
      ASSERT_NEAR(p.mass[head * p.args.num_keys + key], expected[key], 3e-7 + 8e-6 * expected[key])
          << "round " << round << " key " << key << " of " << p.args.num_keys << " rows "
          << p.args.num_rows << " extra " << p.args.num_extra_keys;
    }
  }
}

TEST_P(AttentionMassTest, AgreesWithTheReferenceForEveryHead) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    Problem p = random_problem(random, 200);
    p.bind();
    attention_mass(p.args);
    Problem reference = p;
    reference.bind();
    attention_mass_reference(reference.args);
    for (size_t i = 0; i < p.mass.size(); ++i) {
      ASSERT_NEAR(p.mass[i], reference.mass[i], 3e-7 + 1e-5 * reference.mass[i])
          << "round " << round;
    }
  }
}

TEST_P(AttentionMassTest, LongPromptsAgreeWithTheReference) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 4; ++round) {
    Problem p = random_problem(random, 0, pick(random, 1500, 3000));
    p.bind();
    attention_mass(p.args);
    Problem reference = p;
    reference.bind();
    attention_mass_reference(reference.args);
    for (size_t i = 0; i < p.mass.size(); ++i) {
      ASSERT_NEAR(p.mass[i], reference.mass[i], 1e-7 + 1e-4 * reference.mass[i]);
    }
  }
}

TEST_P(AttentionMassTest, BitsDoNotDependOnTheThreads) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 40; ++round) {
    Problem p = random_problem(random, 700);
    Problem single = p;
    p.bind();
    set_kernel_threads(4);
    attention_mass(p.args);
    single.bind();
    set_kernel_threads(1);
    attention_mass(single.args);
    ASSERT_EQ(p.mass, single.mass);
  }
}

TEST_P(AttentionMassTest, EachRowGivesOneUnitOverPromptAndExtraKeys) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    Problem p = random_problem(random, 200);
    p.args.reduction = RowReduction::kSum;
    p.args.num_extra_keys = 0;
    p.extra_visible.clear();
    p.bind();
    attention_mass(p.args);
    int64_t rows_that_see = 0;
    for (int64_t row = 0; row < p.args.num_rows; ++row) {
      const int64_t first = p.first_visible.empty() ? 0 : p.first_visible[row];
      const int64_t last = p.visible.empty() ? p.args.num_keys : p.visible[row];
      rows_that_see += first < last ? 1 : 0;
    }
    for (int64_t head = 0; head < p.args.num_heads; ++head) {
      double total = 0;
      for (int64_t key = 0; key < p.args.num_keys; ++key) {
        total += p.mass[head * p.args.num_keys + key];
      }
      ASSERT_NEAR(total, static_cast<double>(rows_that_see), 1e-4);
    }
  }
}

TEST_P(AttentionMassTest, LargeScoresDoNotOverflow) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 40; ++round) {
    Problem p = random_problem(random, 200);
    p.args.scale = 50;
    p.bind();
    attention_mass(p.args);
    for (const float value : p.mass) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_GE(value, 0.0F);
    }
  }
}

// Scores that are no numbers are an error, which must be seen wherever the broken key lies.
TEST_P(AttentionMassTest, AKeyThatIsNoNumberBreaksTheMassOfRowsThatSeeIt) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    Problem p = random_problem(random, 200);
    p.first_visible.clear();
    p.visible.clear();
    const int64_t broken = pick(random, 0, p.args.num_keys - 1);
    p.keys.set(broken * p.args.keys.row_stride + pick(random, 0, p.args.head_dim - 1), NAN);
    p.bind();
    attention_mass(p.args);
    const int64_t group_size = p.args.num_heads / p.args.num_kv_heads;
    for (int64_t head = 0; head < p.args.num_heads; ++head) {
      for (int64_t key = 0; key < p.args.num_keys; ++key) {
        ASSERT_EQ(std::isnan(p.mass[head * p.args.num_keys + key]), head < group_size)
            << "round " << round << " key " << broken << " of " << p.args.num_keys;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, AttentionMassTest, testing::ValuesIn(supported_cpu_levels()),
                         level_test_name);

}  // namespace
}  // namespace kvlab
