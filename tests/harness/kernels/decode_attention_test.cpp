#include "harness/kernels/decode_attention.h"

#include <algorithm>

#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

// One head with its storage.
struct Head {
  Values queries, prompt_keys, prompt_values, new_keys, new_values, output;
  int64_t prompt_len, new_len;

  DecodeHead view() {
    return {queries.data(), prompt_keys.data(), prompt_values.data(),
            prompt_len,     new_keys.data(),    new_values.data(),
            new_len,        output.data()};
  }
};

struct Problem {
  ElementType type;
  int64_t group_size;
  int64_t head_dim;
  float scale;
  std::vector<Head> heads;

  std::vector<DecodeHead> views() {
    std::vector<DecodeHead> result;
    for (Head& head : heads) {
      result.push_back(head.view());
    }
    return result;
  }
};

Head random_head(std::mt19937_64& random, ElementType type, int64_t group_size, int64_t head_dim,
                 int64_t longest) {
  const int64_t prompt_len = pick(random, 0, 3) == 0 ? 0 : pick(random, 1, longest);
  const int64_t new_len = prompt_len > 0 && pick(random, 0, 3) == 0 ? 0 : pick(random, 1, 40);
  const auto values = [&](int64_t rows) { return Values::random(type, rows * head_dim, random); };
  return {values(group_size), values(prompt_len),
          values(prompt_len), values(new_len),
          values(new_len),    Values(type, group_size * head_dim),
          prompt_len,         new_len};
}

Problem random_problem(std::mt19937_64& random, int64_t max_heads, int64_t longest) {
  Problem p;
  p.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  p.group_size = pick(random, 1, 8);
  p.head_dim = pick_of<int64_t>(random, {64, 80, 96, 128, 256, 16, 40, pick(random, 1, 256)});
  p.scale = 1.0F / std::sqrt(static_cast<float>(p.head_dim)) * pick_of(random, {1.0F, 3.0F});
  const int64_t heads = pick(random, 1, max_heads);
  for (int64_t h = 0; h < heads; ++h) {
    p.heads.push_back(random_head(random, p.type, p.group_size, p.head_dim, longest));
  }
  return p;
}

void run(Problem& p) {
  const std::vector<DecodeHead> views = p.views();
  decode_attention({p.type, p.group_size, p.head_dim, p.scale, views});
}

// What the output should be, in double precision; also the largest weighted magnitude.
std::vector<double> expected_row(const Problem& p, const Head& head, int64_t row) {
  const int64_t len = head.prompt_len + head.new_len;
  const auto at = [&](const Values& prompt, const Values& fresh, int64_t i, int64_t d) {
    return i < head.prompt_len
               ? static_cast<double>(prompt.at(i * p.head_dim + d))
               : static_cast<double>(fresh.at((i - head.prompt_len) * p.head_dim + d));
  };
  std::vector<double> scores(len);
  for (int64_t i = 0; i < len; ++i) {
    for (int64_t d = 0; d < p.head_dim; ++d) {
      scores[i] +=
          head.queries.at(row * p.head_dim + d) * at(head.prompt_keys, head.new_keys, i, d);
    }
    scores[i] *= p.scale;
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> output(p.head_dim);
  for (int64_t i = 0; i < len; ++i) {
    const double weight = std::exp(scores[i] - largest);
    sum += weight;
    for (int64_t d = 0; d < p.head_dim; ++d) {
      output[d] += weight * at(head.prompt_values, head.new_values, i, d);
    }
  }
  for (double& value : output) {
    value /= sum;
  }
  return output;
}

void expect_right(const Problem& p, int round) {
  for (size_t h = 0; h < p.heads.size(); ++h) {
    for (int64_t row = 0; row < p.group_size; ++row) {
      const std::vector<double> expected = expected_row(p, p.heads[h], row);
      for (int64_t d = 0; d < p.head_dim; ++d) {
        const double tolerance =
            2e-5 + (p.type == ElementType::kBFloat16 ? std::abs(expected[d]) / 256 : 0);
        ASSERT_NEAR(p.heads[h].output.at(row * p.head_dim + d), expected[d], tolerance)
            << "round " << round << " head " << h << " row " << row << " d " << d << " lengths "
            << p.heads[h].prompt_len << "+" << p.heads[h].new_len << " head_dim " << p.head_dim;
      }
    }
  }
}

class DecodeAttentionTest : public testing::TestWithParam<CpuLevel> {
 protected:
  LevelGuard guard_{GetParam()};
};

TEST_P(DecodeAttentionTest, AgreesWithDoublePrecisionOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    Problem p = random_problem(random, 3, 70);
    run(p);
    expect_right(p, round);
  }
}

TEST_P(DecodeAttentionTest, AgreesWithDoublePrecisionAcrossChunks) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 12; ++round) {
    Problem p = random_problem(random, 2, 1700);
    run(p);
    expect_right(p, round);
  }
  for (const int64_t prompt_len : {511, 512, 513, 1023, 1024}) {
    Problem p{ElementType::kBFloat16, 3, 64, 0.125F, {}};
    Head head = random_head(random, p.type, 3, 64, 1);
    head.prompt_len = prompt_len;
    head.prompt_keys = Values::random(p.type, prompt_len * 64, random);
    head.prompt_values = Values::random(p.type, prompt_len * 64, random);
    p.heads.push_back(head);
    run(p);
    expect_right(p, static_cast<int>(prompt_len));
  }
}

TEST_P(DecodeAttentionTest, AHeadsBitsDependOnNeitherItsCompanyNorTheThreads) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    Problem p = random_problem(random, 6, round % 10 == 0 ? 1500 : 100);
    set_kernel_threads(static_cast<int>(pick(random, 2, 5)));
    run(p);
    Problem again = p;
    set_kernel_threads(1);
    for (size_t h = 0; h < p.heads.size(); ++h) {
      Problem alone{p.type, p.group_size, p.head_dim, p.scale, {again.heads[h]}};
      run(alone);
      ASSERT_EQ(alone.heads[0].output, p.heads[h].output);
    }
  }
}

// A cache that aliases the prompt and one that copied it, or a token that has moved from the new
// run to the prompt, must answer alike.
TEST_P(DecodeAttentionTest, BitsDoNotDependOnWhereTheRunsDivide) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 60; ++round) {
    Problem p = random_problem(random, 1, round % 10 == 0 ? 1500 : 100);
    run(p);
    Head& head = p.heads[0];
    const int64_t len = head.prompt_len + head.new_len;
    const int64_t cut = pick(random, 0, len);
    Head moved = head;
    moved.prompt_len = cut;
    moved.new_len = len - cut;
    moved.prompt_keys = moved.prompt_values = Values(p.type, cut * p.head_dim);
    moved.new_keys = moved.new_values = Values(p.type, (len - cut) * p.head_dim);
    for (int64_t i = 0; i < len; ++i) {
      for (int64_t d = 0; d < p.head_dim; ++d) {
        const bool from_prompt = i < head.prompt_len;
        const int64_t from = (from_prompt ? i : i - head.prompt_len) * p.head_dim + d;
        const int64_t to = (i < cut ? i : i - cut) * p.head_dim + d;
        (i < cut ? moved.prompt_keys : moved.new_keys)
            .set(to, (from_prompt ? head.prompt_keys : head.new_keys).at(from));
        (i < cut ? moved.prompt_values : moved.new_values)
            .set(to, (from_prompt ? head.prompt_values : head.new_values).at(from));
      }
    }
    Problem other{p.type, p.group_size, p.head_dim, p.scale, {moved}};
    run(other);
    ASSERT_EQ(other.heads[0].output, head.output) << "cut " << cut << " of " << len;
  }
}

TEST_P(DecodeAttentionTest, LargeScoresDoNotOverflow) {
  std::mt19937_64 random(5);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    Problem p{type, 2, 64, 30.0F, {}};
    p.heads.push_back(random_head(random, type, 2, 64, 600));
    run(p);
    for (int64_t i = 0; i < p.heads[0].output.size(); ++i) {
      ASSERT_TRUE(std::isfinite(p.heads[0].output.at(i)));
    }
  }
}

// A broken cache must not pass for a reply.
TEST_P(DecodeAttentionTest, AKeyThatIsNoNumberBreaksItsHeadAlone) {
  std::mt19937_64 random(6);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    for (const int64_t broken : {0, 9, 17, 18}) {
      Problem p{type, 3, 64, 0.125F, {}};
      for (int h = 0; h < 2; ++h) {
        Head head = random_head(random, type, 3, 64, 1);
        head.prompt_len = 19;
        head.prompt_keys = Values::random(type, 19 * 64, random);
        head.prompt_values = Values::random(type, 19 * 64, random);
        p.heads.push_back(head);
      }
      p.heads[0].prompt_keys.set(broken * 64 + 5, NAN);
      run(p);
      for (int64_t i = 0; i < p.heads[0].output.size(); ++i) {
        ASSERT_TRUE(std::isnan(p.heads[0].output.at(i))) << "key " << broken;
        ASSERT_TRUE(std::isfinite(p.heads[1].output.at(i)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, DecodeAttentionTest, testing::ValuesIn(supported_cpu_levels()),
                         level_test_name);

}  // namespace
}  // namespace kvlab
