#include "harness/kernels/prefill_attention.h"

#include <algorithm>

#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

// Queries, keys and values as a runtime may hold them: gaps between rows and heads.
struct Problem {
  PrefillAttentionArgs args;
  Values queries{ElementType::kFloat32, 0};
  Values keys{ElementType::kFloat32, 0};
  Values values{ElementType::kFloat32, 0};
  Values output{ElementType::kFloat32, 0};
  std::vector<float> logsumexp;

  void bind() {
    args.queries.data = queries.data();
    args.keys.data = keys.data();
    args.values.data = values.data();
    args.output.data = output.data();
    args.logsumexp = logsumexp.data();
  }
};

HeadRows layout(std::mt19937_64& random, int64_t heads, int64_t rows, int64_t head_dim) {
  HeadRows result;
  if (pick(random, 0, 1) == 0) {  // [heads, rows, head_dim]
    result.row_stride = head_dim + pick(random, 0, 3);
    result.head_stride = rows * result.row_stride + pick(random, 0, 9);
  } else {  // [rows, heads, head_dim]
    result.head_stride = head_dim + pick(random, 0, 3);
    result.row_stride = heads * result.head_stride + pick(random, 0, 9);
  }
  return result;
}

int64_t extent(const HeadRows& rows, int64_t heads, int64_t len, int64_t head_dim) {
  return (heads - 1) * rows.head_stride + (len - 1) * rows.row_stride + head_dim;
}

Problem make(std::mt19937_64& random, PrefillAttentionArgs args, float spread = 1) {
  Problem p;
  p.args = args;
  p.args.queries = layout(random, args.num_heads, args.q_len, args.head_dim);
  p.args.keys = layout(random, args.num_kv_heads, args.kv_len, args.head_dim);
  p.args.values = layout(random, args.num_kv_heads, args.kv_len, args.head_dim);
  const HeadRows out = layout(random, args.num_heads, args.q_len, args.head_dim);
  p.args.output.head_stride = out.head_stride;
  p.args.output.row_stride = out.row_stride;
  p.queries = Values::random(
      args.type, extent(p.args.queries, args.num_heads, args.q_len, args.head_dim), random, spread);
  p.keys = Values::random(
      args.type, extent(p.args.keys, args.num_kv_heads, args.kv_len, args.head_dim), random);
  p.values = Values::random(
      args.type, extent(p.args.values, args.num_kv_heads, args.kv_len, args.head_dim), random);
  p.output = Values(args.type, extent(out, args.num_heads, args.q_len, args.head_dim));
  p.logsumexp.resize(args.num_heads * args.q_len);
  return p;
}

// Makes what lies behind the first `len` keys unreadable: any use of it shows.
void poison(Problem& p, int64_t len) {
  for (int64_t head = 0; head < p.args.num_kv_heads; ++head) {
    for (int64_t row = len; row < p.args.kv_len; ++row) {
      for (int64_t d = 0; d < p.args.head_dim; ++d) {
        p.keys.set(head * p.args.keys.head_stride + row * p.args.keys.row_stride + d, NAN);
        p.values.set(head * p.args.values.head_stride + row * p.args.values.row_stride + d, NAN);
      }
    }
  }
}

PrefillAttentionArgs random_args(std::mt19937_64& random, int64_t longest) {
  PrefillAttentionArgs args;
  args.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  args.num_kv_heads = pick(random, 1, 2);
  args.num_heads = args.num_kv_heads * pick(random, 1, 8);
  args.head_dim = pick_of<int64_t>(random, {32, 64, 80, 96, 128, 256, 16, pick(random, 1, 256)});
  args.kv_len = pick_of<int64_t>(random, {1, 47, 48, 49, 63, 64, 65, pick(random, 1, longest)});
  args.q_len = pick(random, 0, 2) == 0 ? args.kv_len : pick(random, 1, args.kv_len);
  args.scale = 1.0F / std::sqrt(static_cast<float>(args.head_dim));
  args.sliding_window = pick(random, 0, 2) == 0 ? pick(random, 1, args.kv_len + 3) : 0;
  return args;
}

// All queries of `len` tokens, one KV head of 64 dimensions.
PrefillAttentionArgs whole_prompt(ElementType type, int64_t num_heads, int64_t len, float scale) {
  PrefillAttentionArgs args;
  args.type = type;
  args.num_heads = num_heads;
  args.num_kv_heads = 1;
  args.head_dim = 64;
  args.q_len = args.kv_len = len;
  args.scale = scale;
  return args;
}

// Checks `rows` random rows against double precision.
void expect_right(const Problem& p, std::mt19937_64& random, int rows, int round) {
  const PrefillAttentionArgs& a = p.args;
  for (int n = 0; n < rows; ++n) {
    const int64_t head = pick(random, 0, a.num_heads - 1);
    const int64_t row = pick(random, 0, a.q_len - 1);
    const int64_t kv_head = head / (a.num_heads / a.num_kv_heads);
    const int64_t last = a.kv_len - a.q_len + row;
    const int64_t first =
        a.sliding_window > 0 ? std::max<int64_t>(0, last - a.sliding_window + 1) : 0;
    std::vector<double> scores;
    for (int64_t key = first; key <= last; ++key) {
      double dot = 0;
      for (int64_t d = 0; d < a.head_dim; ++d) {
        dot += static_cast<double>(
                   p.queries.at(head * a.queries.head_stride + row * a.queries.row_stride + d)) *
               p.keys.at(kv_head * a.keys.head_stride + key * a.keys.row_stride + d);
      }
      scores.push_back(dot * a.scale);
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    std::vector<double> output(a.head_dim);
    for (int64_t key = first; key <= last; ++key) {
      const double weight = std::exp(scores[key - first] - largest);
      sum += weight;
      for (int64_t d = 0; d < a.head_dim; ++d) {
        output[d] +=
            weight * p.values.at(kv_head * a.values.head_stride + key * a.values.row_stride + d);
      }
    }
    const bool bf16 = a.type == ElementType::kBFloat16;
    ASSERT_NEAR(p.logsumexp[head * a.q_len + row], largest + std::log(sum),
                (bf16 ? 2e-5 : 3e-6) + 1e-6 * std::abs(largest))
        << "round " << round;
    for (int64_t d = 0; d < a.head_dim; ++d) {
      // Weights of bfloat16 have a relative error of 2^-9 each.
      const double expected = output[d] / sum;
      ASSERT_NEAR(p.output.at(head * a.output.head_stride + row * a.output.row_stride + d),
                  expected, bf16 ? 6e-3 + std::abs(expected) / 200 : 2e-5)
          << "round " << round << " head " << head << " row " << row << " d " << d << " q_len "
          << a.q_len << " kv_len " << a.kv_len << " head_dim " << a.head_dim << " window "
          << a.sliding_window;
    }
  }
}

class PrefillAttentionTest : public testing::TestWithParam<CpuLevel> {
 protected:
  LevelGuard guard_{GetParam()};
};

TEST_P(PrefillAttentionTest, AgreesWithDoublePrecisionOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 700; ++round) {
    Problem p = make(random, random_args(random, 150), pick_of(random, {0.3F, 1.0F, 4.0F}));
    p.bind();
    prefill_attention(p.args);
    expect_right(p, random, 6, round);
  }
}

TEST_P(PrefillAttentionTest, AgreesWithTheReferenceInEveryRow) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 60; ++round) {
    Problem p = make(random, random_args(random, 200));
    p.bind();
    prefill_attention(p.args);
    Problem reference = p;
    reference.bind();
    prefill_attention_reference(reference.args);
    const double tolerance = p.args.type == ElementType::kBFloat16 ? 0.04 : 2e-5;
    for (int64_t i = 0; i < p.output.size(); ++i) {
      ASSERT_NEAR(p.output.at(i), reference.output.at(i), tolerance) << "round " << round;
    }
    for (size_t i = 0; i < p.logsumexp.size(); ++i) {
      ASSERT_NEAR(p.logsumexp[i], reference.logsumexp[i], 4e-5);
    }
  }
}

// Longer than what one task packs.
TEST_P(PrefillAttentionTest, LongPromptsAgreeWithDoublePrecision) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 16; ++round) {
    PrefillAttentionArgs args = random_args(random, 150);
    args.type = round % 4 == 0 ? ElementType::kFloat32 : ElementType::kBFloat16;
    args.head_dim = pick_of<int64_t>(random, {32, 64, 128});
    args.scale = 1.0F / std::sqrt(static_cast<float>(args.head_dim));
    args.kv_len = pick(random, 513, 1300);
    args.q_len = pick(random, 1, args.kv_len);
    args.sliding_window = round % 2 == 0 ? 0 : pick(random, 1, args.kv_len);
    Problem p = make(random, args);
    p.bind();
    prefill_attention(p.args);
    expect_right(p, random, 12, round);
  }
}

TEST_P(PrefillAttentionTest, BitsDoNotDependOnTheThreads) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 20; ++round) {
    Problem p = make(random, random_args(random, 300));
    Problem single = p;
    p.bind();
    set_kernel_threads(4);
    prefill_attention(p.args);
    single.bind();
    set_kernel_threads(1);
    prefill_attention(single.args);
    ASSERT_EQ(p.output, single.output);
    ASSERT_EQ(p.logsumexp, single.logsumexp);
  }
}

// A prompt in chunks of any size gives the bits of the whole.
TEST_P(PrefillAttentionTest, BitsDoNotDependOnTheChunks) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 40; ++round) {
    PrefillAttentionArgs args = random_args(random, round % 8 == 0 ? 900 : 300);
    if (round % 2 == 0) {
      args.type = ElementType::kBFloat16;
      args.head_dim = pick_of<int64_t>(random, {32, 64, 128});
    }
    args.q_len = args.kv_len;
    Problem whole = make(random, args);
    Problem chunked = whole;
    whole.bind();
    prefill_attention(whole.args);
    chunked.bind();
    std::vector<float> logsumexp(args.kv_len * args.num_heads);
    for (int64_t begin = 0; begin < args.kv_len;) {
      const int64_t end = std::min(args.kv_len, begin + pick(random, 1, 120));
      Problem known = chunked;
      poison(known, end);
      PrefillAttentionArgs part = chunked.args;
      part.keys.data = known.keys.data();
      part.values.data = known.values.data();
      part.kv_len = end;
      part.q_len = end - begin;
      part.queries.data = chunked.queries.from(begin * part.queries.row_stride);
      part.output.data = chunked.output.from(begin * part.output.row_stride);
      part.logsumexp = logsumexp.data();
      prefill_attention(part);
      for (int64_t head = 0; head < args.num_heads; ++head) {
        for (int64_t row = begin; row < end; ++row) {
          ASSERT_EQ(whole.logsumexp[head * args.kv_len + row],
                    logsumexp[head * part.q_len + row - begin])
              << "round " << round;
        }
      }
      begin = end;
    }
    ASSERT_EQ(whole.output, chunked.output) << "round " << round;
  }
}

TEST_P(PrefillAttentionTest, LargeScoresNeitherOverflowNorVanish) {
  std::mt19937_64 random(5);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    const PrefillAttentionArgs args = whole_prompt(type, 2, 200, 1);
    Problem p = make(random, args, 40);
    p.bind();
    prefill_attention(p.args);
    for (int64_t row = 0; row < args.q_len; ++row) {
      double magnitude = 0;
      for (int64_t d = 0; d < args.head_dim; ++d) {
        const float value = p.output.at(row * p.args.output.row_stride + d);
        ASSERT_TRUE(std::isfinite(value));
        magnitude += std::abs(value);
      }
      ASSERT_GT(magnitude, 1.0);
    }
  }
}

// A broken cache must not pass for a prompt, and rows before it are as they were.
TEST_P(PrefillAttentionTest, AKeyThatIsNoNumberBreaksTheRowsThatSeeIt) {
  std::mt19937_64 random(9);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    for (const int64_t broken : {0, 70, 100, 129}) {
      Problem whole = make(random, whole_prompt(type, 3, 130, 0.125F));
      Problem p = whole;
      p.keys.set(broken * p.args.keys.row_stride + 5, NAN);
      whole.bind();
      prefill_attention(whole.args);
      p.bind();
      prefill_attention(p.args);
      for (int64_t head = 0; head < 3; ++head) {
        for (int64_t row = 0; row < 130; ++row) {
          for (int64_t d = 0; d < 64; ++d) {
            const int64_t place = head * p.args.output.head_stride + row * p.args.output.row_stride;
            const float value = p.output.at(place + d);
            ASSERT_TRUE(row < broken ? value == whole.output.at(place + d) : std::isnan(value))
                << "key " << broken << " row " << row;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, PrefillAttentionTest, testing::ValuesIn(supported_cpu_levels()),
                         level_test_name);

}  // namespace
}  // namespace kvlab
