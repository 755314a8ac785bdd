#include "methods/attention_mass/attention_sums.h"

#include <algorithm>

#include "harness/kernels/prefill_attention.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

struct Problem {
  PrefillAttentionArgs attention;
  Values queries{ElementType::kFloat32, 0};
  Values keys{ElementType::kFloat32, 0};
  Values values{ElementType::kFloat32, 0};
  Values output{ElementType::kFloat32, 0};
  std::vector<float> logsumexp;
  std::vector<float> sums;

  // The sums of queries [begin, end) of the prompt are added.
  void add(int64_t begin, int64_t end) {
    PrefillAttentionArgs part = attention;
    part.q_len = end - begin;
    part.kv_len = end;
    part.queries.data = queries.from(begin * part.queries.row_stride);
    part.keys.data = keys.data();
    part.values.data = values.data();
    part.output.data = output.from(begin * part.output.row_stride);
    logsumexp.assign(part.num_heads * part.q_len, 0);
    part.logsumexp = logsumexp.data();
    prefill_attention(part);
    AttentionSumsArgs args;
    args.type = part.type;
    args.num_heads = part.num_heads;
    args.num_kv_heads = part.num_kv_heads;
    args.head_dim = part.head_dim;
    args.q_len = part.q_len;
    args.kv_len = part.kv_len;
    args.scale = part.scale;
    args.sliding_window = part.sliding_window;
    args.queries = part.queries;
    args.keys = part.keys;
    args.logsumexp = logsumexp.data();
    args.sums = sums.data();
    args.sums_head_stride = attention.kv_len;
    add_attention_sums(args);
  }
};

// A prompt of `len` tokens.
Problem random_problem(std::mt19937_64& random, int64_t len) {
  Problem p;
  PrefillAttentionArgs& a = p.attention;
  a.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  a.num_kv_heads = pick(random, 1, 2);
  a.num_heads = a.num_kv_heads * pick(random, 1, 8);
  a.head_dim = pick_of<int64_t>(random, {64, 80, 96, 128, 256, 40, pick(random, 1, 256)});
  a.q_len = a.kv_len = len;
  a.scale = 1.0F / std::sqrt(static_cast<float>(a.head_dim));
  a.sliding_window = pick(random, 0, 2) == 0 ? pick(random, 1, len + 3) : 0;
  const int64_t row = a.head_dim + pick(random, 0, 3);
  a.queries = {nullptr, len * row, row};
  a.keys = a.values = {nullptr, len * a.head_dim, a.head_dim};
  a.output = {nullptr, len * a.head_dim, a.head_dim};
  p.queries = Values::random(a.type, a.num_heads * len * row, random);
  p.keys = Values::random(a.type, a.num_kv_heads * len * a.head_dim, random);
  p.values = Values::random(a.type, a.num_kv_heads * len * a.head_dim, random);
  p.output = Values(a.type, a.num_heads * len * a.head_dim);
  p.sums.assign(a.num_heads * len, 0);
  return p;
}

std::vector<double> expected_sums(const Problem& p, int64_t head) {
  const PrefillAttentionArgs& a = p.attention;
  const int64_t kv_head = head / (a.num_heads / a.num_kv_heads);
  std::vector<double> sums(a.kv_len);
  for (int64_t row = 0; row < a.q_len; ++row) {
    const int64_t first =
        a.sliding_window > 0 ? std::max<int64_t>(0, row - a.sliding_window + 1) : 0;
    std::vector<double> weights;
    double total = 0;
    for (int64_t key = first; key <= row; ++key) {
      double dot = 0;
      for (int64_t d = 0; d < a.head_dim; ++d) {
        dot += static_cast<double>(
                   p.queries.at(head * a.queries.head_stride + row * a.queries.row_stride + d)) *
               p.keys.at(kv_head * a.keys.head_stride + key * a.keys.row_stride + d);
      }
      weights.push_back(std::exp(dot * a.scale));
      total += weights.back();
    }
    for (int64_t key = first; key <= row; ++key) {
      sums[key] += weights[key - first] / total;
    }
  }
  return sums;
}

class AttentionSumsTest : public testing::TestWithParam<CpuLevel> {
 protected:
  LevelGuard guard_{GetParam()};
};

TEST_P(AttentionSumsTest, AgreeWithDoublePrecisionOverRandomShapesAndChunks) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 250; ++round) {
    // Now and then more keys than one task takes.
    const int64_t len =
        round % 50 == 49 ? pick_of<int64_t>(random, {257, 600})
                         : pick_of<int64_t>(random, {1, 31, 32, 33, 63, 65, pick(random, 1, 110)});
    Problem p = random_problem(random, len);
    const bool whole = pick(random, 0, 1) == 0;
    for (int64_t begin = 0; begin < len;) {
      const int64_t end = whole ? len : std::min(len, begin + pick(random, 1, 60));
      p.add(begin, end);
      begin = end;
    }
    const int64_t head = pick(random, 0, p.attention.num_heads - 1);
    const std::vector<double> expected = expected_sums(p, head);
    for (int64_t key = 0; key < len; ++key) {
      ASSERT_NEAR(p.sums[head * len + key], expected[key], 1e-6 + 2e-5 * expected[key])
          << "round " << round << " key " << key << " of " << len;
    }
  }
}

// The last rows of a prompt asked about the keys before all of them (LookaheadKV's rows).
TEST_P(AttentionSumsTest, RowsBehindAllKeysGiveWhatTheyGaveTheseKeys) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    const int64_t rows = pick(random, 1, 40);
    const int64_t before = pick_of<int64_t>(random, {1, 31, 32, 33, 100, 257});
    const int64_t len = before + rows;
    Problem p = random_problem(random, len);
    p.attention.sliding_window = 0;
    Problem all = p;
    all.add(before, len);  // their logarithms, and what they gave every key
    const PrefillAttentionArgs& a = p.attention;
    AttentionSumsArgs args;
    args.type = a.type;
    args.num_heads = a.num_heads;
    args.num_kv_heads = a.num_kv_heads;
    args.head_dim = a.head_dim;
    args.q_len = rows;
    args.kv_len = before;
    args.rows_follow_keys = true;
    args.scale = a.scale;
    args.queries = {p.queries.from(before * a.queries.row_stride), a.queries.head_stride,
                    a.queries.row_stride};
    args.keys = {p.keys.data(), a.keys.head_stride, a.keys.row_stride};
    args.logsumexp = all.logsumexp.data();
    args.sums = p.sums.data();
    args.sums_head_stride = len;
    add_attention_sums(args);
    for (int64_t head = 0; head < a.num_heads; ++head) {
      for (int64_t key = 0; key < len; ++key) {
        const float expected = key < before ? all.sums[head * len + key] : 0;
        ASSERT_NEAR(p.sums[head * len + key], expected, 1e-6 + 2e-5 * expected)
            << "round " << round << " key " << key << " of " << before;
      }
    }
  }
}

TEST_P(AttentionSumsTest, BitsDoNotDependOnTheThreads) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 10; ++round) {
    Problem p = random_problem(random, 600);
    Problem single = p;
    set_kernel_threads(4);
    p.add(0, 600);
    set_kernel_threads(1);
    single.add(0, 600);
    ASSERT_EQ(p.sums, single.sums);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, AttentionSumsTest, testing::ValuesIn(supported_cpu_levels()),
                         level_test_name);

}  // namespace
}  // namespace kvlab
