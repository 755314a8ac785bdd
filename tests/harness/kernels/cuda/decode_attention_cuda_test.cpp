#include "harness/kernels/cuda/decode_attention_cuda.h"

#include <algorithm>

#include "harness/kernels/cuda/decode_attention_kernel.h"
#include "tests/harness/kernels/cuda/kernel_target.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

struct Head {
  Values queries, prompt_keys, prompt_values, new_keys, new_values;
  int64_t prompt_len, new_len;
};

struct Problem {
  ElementType type;
  int64_t group_size;
  int64_t head_dim;
  float scale;
  std::vector<Head> heads;
};

Head random_head(std::mt19937_64& random, const Problem& p, int64_t prompt_len, int64_t new_len) {
  const auto values = [&](int64_t rows) {
    return Values::random(p.type, rows * p.head_dim, random);
  };
  return {values(p.group_size),
          values(prompt_len),
          values(prompt_len),
          values(new_len),
          values(new_len),
          prompt_len,
          new_len};
}

Problem random_problem(std::mt19937_64& random, int64_t max_heads, int64_t longest) {
  Problem p;
  p.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
  p.group_size = pick_of<int64_t>(random, {1, 2, 3, 4, 5, 6, 7, 8, 8, 17});
  p.head_dim = pick_of<int64_t>(random, {64, 80, 96, 128, 256, 8, 40});
  p.scale = 1.0F / std::sqrt(static_cast<float>(p.head_dim)) * pick_of(random, {1.0F, 3.0F});
  const int64_t heads = pick(random, 1, max_heads);
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t prompt_len = pick(random, 0, 3) == 0 ? 0 : pick(random, 1, longest);
    const int64_t new_len = prompt_len > 0 && pick(random, 0, 3) == 0 ? 0 : pick(random, 1, 40);
    p.heads.push_back(random_head(random, p, prompt_len, new_len));
  }
  return p;
}

class CudaDecodeAttentionTest : public TargetTest {
 protected:
  // Each head's [group_size, head_dim].
  std::vector<Values> run(const Problem& p) {
    TargetMemory memory(GetParam());
    const auto put = [&](const Values& values) {
      return memory.put(values.data(), values.size() * element_size(p.type));
    };
    const int64_t out_size = p.group_size * p.head_dim;
    CudaDecodeArgs args;
    std::vector<DecodeHead> heads;
    for (const Head& head : p.heads) {
      heads.push_back({put(head.queries), put(head.prompt_keys), put(head.prompt_values),
                       head.prompt_len, put(head.new_keys), put(head.new_values), head.new_len,
                       memory.put(nullptr, out_size * element_size(p.type))});
      args.longest = std::max(args.longest, head.prompt_len + head.new_len);
    }
    args.type = p.type;
    args.group_size = p.group_size;
    args.head_dim = p.head_dim;
    args.scale = p.scale;
    args.heads = memory.put(heads);
    args.num_heads = static_cast<int64_t>(heads.size());
    args.scratch = memory.put(nullptr, scratch_bytes(args));
    if (on_gpu()) {
#if defined(KVLAB_CUDA_KERNELS)
      const absl::Status status = decode_attention_cuda(args, nullptr);
      EXPECT_TRUE(status.ok()) << status;
#endif
    } else {
      HostLauncher emulated = launcher();
      launch_decode(emulated, args);
    }
    std::vector<Values> outputs;
    for (const DecodeHead& head : heads) {
      Values& output = outputs.emplace_back(p.type, out_size);
      memory.get(output.data(), head.output, out_size * element_size(p.type));
    }
    return outputs;
  }

  static int64_t scratch_bytes(const CudaDecodeArgs& args) {
    const int64_t chunks = decode_max_chunks(args);
    return chunks <= 1 ? 0 : args.num_heads * chunks * args.group_size * (args.head_dim + 2) * 4;
  }

  // Against the CPU reference.
  static void expect_right(const Problem& p, const std::vector<Values>& outputs, int round) {
    std::vector<Values> expected;
    std::vector<DecodeHead> heads;
    expected.reserve(p.heads.size());
    for (const Head& head : p.heads) {
      Values& output = expected.emplace_back(p.type, p.group_size * p.head_dim);
      heads.push_back({head.queries.data(), head.prompt_keys.data(), head.prompt_values.data(),
                       head.prompt_len, head.new_keys.data(), head.new_values.data(), head.new_len,
                       output.data()});
    }
    decode_attention_reference({p.type, p.group_size, p.head_dim, p.scale, heads});
    for (size_t h = 0; h < p.heads.size(); ++h) {
      for (int64_t i = 0; i < expected[h].size(); ++i) {
        const double value = expected[h].at(i);
        const double tolerance =
            2e-5 + (p.type == ElementType::kBFloat16 ? std::abs(value) / 128 : 0);
        ASSERT_NEAR(outputs[h].at(i), value, tolerance)
            << "round " << round << " head " << h << " row " << i / p.head_dim << " d "
            << i % p.head_dim << " lengths " << p.heads[h].prompt_len << "+" << p.heads[h].new_len
            << " head_dim " << p.head_dim << " group " << p.group_size;
      }
    }
  }
};

TEST_P(CudaDecodeAttentionTest, AgreesWithTheReferenceOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 150; ++round) {
    const Problem p = random_problem(random, 3, 140);
    expect_right(p, run(p), round);
  }
}

TEST_P(CudaDecodeAttentionTest, AgreesWithTheReferenceAcrossChunks) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 10; ++round) {
    const Problem p = random_problem(random, 2, 1700);
    expect_right(p, run(p), round);
  }
  for (const int64_t len : {127, 128, 129, 255, 256, 257, 512, 513, 1024}) {
    Problem p{ElementType::kBFloat16, 3, 64, 0.125F, {}};
    p.heads.push_back(random_head(random, p, len, 0));
    p.heads.push_back(random_head(random, p, 5, 1));
    expect_right(p, run(p), static_cast<int>(len));
  }
}

// More entries than the smallest chunks could hold.
TEST_P(CudaDecodeAttentionTest, AgreesWithTheReferenceWhereChunksGrow) {
  std::mt19937_64 random(3);
  Problem p{ElementType::kBFloat16, 2, 16, 0.5F, {}};
  p.heads.push_back(random_head(random, p, kDecodeMaxChunks * kDecodeSmallestChunk + 777, 3));
  p.heads.push_back(random_head(random, p, 300, 3));
  expect_right(p, run(p), 0);
}

TEST_P(CudaDecodeAttentionTest, AHeadsBitsDependNeitherOnItsCompanyNorOnWhereTheRunsDivide) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 12; ++round) {
    const Problem p = random_problem(random, 4, round % 4 == 0 ? 900 : 100);
    const std::vector<Values> together = run(p);
    for (size_t h = 0; h < p.heads.size(); ++h) {
      Head moved = p.heads[h];
      const int64_t len = moved.prompt_len + moved.new_len;
      const int64_t cut = pick(random, 0, len);
      const auto part = [&](const Values& prompt, const Values& fresh, int64_t begin, int64_t end) {
        Values rows(p.type, (end - begin) * p.head_dim);
        for (int64_t i = begin * p.head_dim; i < end * p.head_dim; ++i) {
          rows.set(i - begin * p.head_dim,
                   i < prompt.size() ? prompt.at(i) : fresh.at(i - prompt.size()));
        }
        return rows;
      };
      const Head& old = p.heads[h];
      moved.prompt_len = cut;
      moved.new_len = len - cut;
      moved.prompt_keys = part(old.prompt_keys, old.new_keys, 0, cut);
      moved.prompt_values = part(old.prompt_values, old.new_values, 0, cut);
      moved.new_keys = part(old.prompt_keys, old.new_keys, cut, len);
      moved.new_values = part(old.prompt_values, old.new_values, cut, len);
      const Problem alone{p.type, p.group_size, p.head_dim, p.scale, {moved}};
      ASSERT_EQ(run(alone)[0], together[h]) << "round " << round << " head " << h;
    }
  }
}

TEST_P(CudaDecodeAttentionTest, LargeScoresDoNotOverflow) {
  std::mt19937_64 random(5);
  for (const ElementType type : {ElementType::kFloat32, ElementType::kBFloat16}) {
    Problem p{type, 2, 64, 30.0F, {}};
    p.heads.push_back(random_head(random, p, 600, 7));
    const Values output = run(p)[0];
    for (int64_t i = 0; i < output.size(); ++i) {
      ASSERT_TRUE(std::isfinite(output.at(i)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaDecodeAttentionTest, all_targets(), target_name);

}  // namespace
}  // namespace kvlab
