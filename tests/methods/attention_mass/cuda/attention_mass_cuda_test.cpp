#include "methods/attention_mass/cuda/attention_mass_cuda.h"

#include <algorithm>

#include "harness/kernels/prefill_attention.h"
#include "methods/attention_mass/cuda/attention_mass_kernel.h"
#include "tests/harness/kernels/cuda/kernel_target.h"
#include "tests/harness/kernels/kernel_test_util.h"
#include "tests/methods/attention_mass/random_problem.h"

namespace kvlab {
namespace {

using Problem = MassProblem;

// Strides are multiples of eight elements: rows are read 16 bytes at a time.
Problem random_problem(std::mt19937_64& random, int64_t longest, int64_t num_keys = 0) {
  return random_mass_problem(random, {.group_sizes = {1, 2, 3, 4, 5, 6, 7, 8, 16},
                                      .head_dims = {64, 80, 96, 128, 256, 8, 40},
                                      .row_counts = {1, 2, 8, 24, 32},
                                      .key_counts = {1, 63, 64, 65, 129},
                                      .longest = longest,
                                      .num_keys = num_keys,
                                      .alignment = 8});
}

// The CPU reference's [num_heads, num_keys].
std::vector<float> reference_mass(Problem& p) {
  p.bind();
  attention_mass_reference(p.args);
  return p.mass;
}

ScoreReduction random_reduction(std::mt19937_64& random, int64_t num_keys) {
  ScoreReduction r;
  r.group = pick_of(random, {GroupReduction::kMean, GroupReduction::kMax, GroupReduction::kSum});
  r.pooling = pick_of(random, {PoolKind::kNone, PoolKind::kMax, PoolKind::kAverage});
  r.kernel = pick_of<int64_t>(random, {1, 3, 5, 7, 21, 49});
  r.pool_before_group = pick(random, 0, 1) == 0;
  r.num_scored = num_keys - pick(random, 0, std::min<int64_t>(num_keys - 1, 32));
  return r;
}

// What the CPU's functions make of scores [num_heads, num_keys] -> [num_groups, num_scored].
std::vector<float> reduced_on_cpu(const std::vector<float>& scores, int64_t num_heads,
                                  int64_t num_groups, int64_t num_keys, const ScoreReduction& r) {
  std::vector<float> part;
  for (int64_t head = 0; head < num_heads; ++head) {
    part.insert(part.end(), scores.begin() + head * num_keys,
                scores.begin() + head * num_keys + r.num_scored);
  }
  std::vector<float> pooled(part.size());
  std::vector<float> grouped(num_groups * r.num_scored);
  if (r.pool_before_group) {
    pool_scores(r.pooling, r.kernel, part.data(), num_heads, r.num_scored, pooled.data());
    reduce_group(r.group, pooled.data(), num_heads, num_groups, r.num_scored, grouped.data());
    return grouped;
  }
  reduce_group(r.group, part.data(), num_heads, num_groups, r.num_scored, grouped.data());
  std::vector<float> result(grouped.size());
  pool_scores(r.pooling, r.kernel, grouped.data(), num_groups, r.num_scored, result.data());
  return result;
}

class CudaAttentionMassTest : public TargetTest {
 protected:
  // [num_heads, num_keys], or with a reduction [num_kv_heads, num_scored].
  std::vector<float> run(Problem& p, const ScoreReduction* reduction = nullptr) {
    TargetMemory memory(GetParam());
    const auto put = [&](const Values& values) {
      return memory.put(values.data(), values.size() * element_size(values.type()));
    };
    CudaAttentionMassArgs args;
    args.mass = p.args;
    args.mass.queries.data = put(p.queries);
    args.mass.keys.data = put(p.keys);
    args.mass.extra_keys.data = put(p.extra_keys);
    args.mass.first_visible = memory.put(p.first_visible);
    args.mass.visible = memory.put(p.visible);
    args.mass.extra_visible = memory.put(p.extra_visible);
    std::vector<float> out(reduction == nullptr ? p.args.num_heads * p.args.num_keys
                                                : p.args.num_kv_heads * reduction->num_scored);
    const auto bytes = static_cast<int64_t>(out.size() * sizeof(float));
    auto* device_out = static_cast<float*>(memory.put(nullptr, bytes));
    (reduction == nullptr ? args.mass.mass : args.reduced) = device_out;
    if (reduction != nullptr) {
      args.reduction = *reduction;
    }
    const int64_t rows = p.args.num_heads * p.args.num_rows;
    args.scratch = memory.put(nullptr, rows * (2 + 2 * mass_chunks(mass_input(args.mass))) * 4);
    if (on_gpu()) {
#if defined(KVLAB_CUDA_KERNELS)
      const absl::Status status = attention_mass_cuda(args, nullptr);
      EXPECT_TRUE(status.ok()) << status;
#endif
    } else {
      HostLauncher emulated = launcher();
      launch_mass(emulated, args);
    }
    memory.get(out.data(), device_out, bytes);
    return out;
  }
};

TEST_P(CudaAttentionMassTest, AgreesWithTheReferenceOverRandomShapes) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 120; ++round) {
    Problem p = random_problem(random, 200);
    const std::vector<float> mass = run(p);
    const std::vector<float> expected = reference_mass(p);
    for (size_t i = 0; i < mass.size(); ++i) {
      ASSERT_NEAR(mass[i], expected[i], 5e-7 + 2e-5 * expected[i])
          << "round " << round << " head " << i / p.args.num_keys << " key " << i % p.args.num_keys
          << " of " << p.args.num_keys << " rows " << p.args.num_rows << " extra "
          << p.args.num_extra_keys << " head_dim " << p.args.head_dim;
    }
  }
}

TEST_P(CudaAttentionMassTest, LongPromptsAgreeWithTheReference) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 3; ++round) {
    Problem p = random_problem(random, 0, pick(random, 1100, 1700));
    const std::vector<float> mass = run(p);
    const std::vector<float> expected = reference_mass(p);
    for (size_t i = 0; i < mass.size(); ++i) {
      ASSERT_NEAR(mass[i], expected[i], 1e-7 + 1e-4 * expected[i]) << "round " << round;
    }
  }
}

TEST_P(CudaAttentionMassTest, FusedReductionEqualsTheCpuFunctionsOnItsOwnScores) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    Problem p = random_problem(random, 300);
    const ScoreReduction reduction = random_reduction(random, p.args.num_keys);
    const std::vector<float> expected =
        reduced_on_cpu(run(p), p.args.num_heads, p.args.num_kv_heads, p.args.num_keys, reduction);
    const std::vector<float> reduced = run(p, &reduction);
    ASSERT_EQ(reduced, expected) << "round " << round << " keys " << p.args.num_keys << " kernel "
                                 << reduction.kernel << " scored " << reduction.num_scored;
  }
}

TEST_P(CudaAttentionMassTest, LargeScoresDoNotOverflow) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 10; ++round) {
    Problem p = random_problem(random, 200);
    p.args.scale = 50;
    for (const float value : run(p)) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_GE(value, 0.0F);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaAttentionMassTest, all_targets(), target_name);

class CudaScoreReductionTest : public TargetTest {};

TEST_P(CudaScoreReductionTest, EqualsTheCpuFunctionsBitForBit) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 100; ++round) {
    TargetMemory memory(GetParam());
    const int64_t num_groups = pick(random, 1, 4);
    const int64_t num_heads = num_groups * pick(random, 1, 40);
    const int64_t num_keys = pick(random, 1, 400);
    const ScoreReduction reduction = random_reduction(random, num_keys);
    std::vector<float> scores(num_heads * num_keys);
    std::normal_distribution<float> normal;
    for (float& score : scores) {
      score = normal(random);
    }
    std::vector<float> out(num_groups * reduction.num_scored);
    const auto bytes = static_cast<int64_t>(out.size() * sizeof(float));
    const float* device_scores = memory.put(scores);
    auto* device_out = static_cast<float*>(memory.put(nullptr, bytes));
    if (on_gpu()) {
#if defined(KVLAB_CUDA_KERNELS)
      const absl::Status status = reduce_scores_cuda(device_scores, num_heads, num_groups, num_keys,
                                                     reduction, device_out, nullptr);
      EXPECT_TRUE(status.ok()) << status;
#endif
    } else {
      HostLauncher emulated = launcher();
      launch_reduction(emulated, device_scores, num_heads, num_groups, num_keys, reduction,
                       device_out);
    }
    memory.get(out.data(), device_out, bytes);
    ASSERT_EQ(out, reduced_on_cpu(scores, num_heads, num_groups, num_keys, reduction))
        << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaScoreReductionTest, all_targets(), target_name);

class CudaAttentionSumsTest : public TargetTest {};

TEST_P(CudaAttentionSumsTest, AgreeWithTheReferenceOverRandomShapesAndChunks) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 40; ++round) {
    AttentionSumsArgs host;
    host.type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
    host.num_kv_heads = pick(random, 1, 2);
    host.num_heads = host.num_kv_heads * pick(random, 1, 8);
    host.head_dim = pick_of<int64_t>(random, {64, 80, 96, 128, 256});
    host.q_len = pick_of<int64_t>(random, {1, 63, 64, 65, pick(random, 1, 200)});
    host.kv_len = host.q_len + (pick(random, 0, 1) == 0 ? 0 : pick(random, 1, 150));
    host.scale = 1.0F / std::sqrt(static_cast<float>(host.head_dim));
    host.sliding_window = pick(random, 0, 2) == 0 ? pick(random, 1, host.kv_len + 3) : 0;
    host.queries = random_head_rows(random, host.q_len, host.head_dim, 8);
    host.keys = random_head_rows(random, host.kv_len, host.head_dim, 8);
    host.sums_head_stride = host.kv_len + pick(random, 0, 5);
    const Values queries =
        Values::random(host.type, host.num_heads * host.queries.head_stride, random);
    const Values keys =
        Values::random(host.type, host.num_kv_heads * host.keys.head_stride, random);
    host.queries.data = queries.data();
    host.keys.data = keys.data();

    // The logsumexp as prefill attention gives it.
    PrefillAttentionArgs attention;
    attention.type = host.type;
    attention.num_heads = host.num_heads;
    attention.num_kv_heads = host.num_kv_heads;
    attention.head_dim = host.head_dim;
    attention.q_len = host.q_len;
    attention.kv_len = host.kv_len;
    attention.scale = host.scale;
    attention.sliding_window = host.sliding_window;
    attention.queries = host.queries;
    attention.keys = attention.values = host.keys;
    Values output(host.type, host.num_heads * host.q_len * host.head_dim);
    attention.output = {output.data(), host.q_len * host.head_dim, host.head_dim};
    std::vector<float> logsumexp(host.num_heads * host.q_len);
    attention.logsumexp = logsumexp.data();
    prefill_attention_reference(attention);
    host.logsumexp = logsumexp.data();

    const std::vector<float> before(host.num_heads * host.sums_head_stride, 0.25F);
    std::vector<float> expected = before;
    host.sums = expected.data();
    add_attention_sums_reference(host);

    TargetMemory memory(GetParam());
    AttentionSumsArgs args = host;
    args.queries.data = memory.put(queries.data(), queries.size() * element_size(host.type));
    args.keys.data = memory.put(keys.data(), keys.size() * element_size(host.type));
    args.logsumexp = memory.put(logsumexp);
    args.sums = memory.put(before);
    if (on_gpu()) {
#if defined(KVLAB_CUDA_KERNELS)
      const absl::Status status = add_attention_sums_cuda(args, nullptr);
      EXPECT_TRUE(status.ok()) << status;
#endif
    } else {
      HostLauncher emulated = launcher();
      launch_sums(emulated, args);
    }
    std::vector<float> sums(before.size());
    memory.get(sums.data(), args.sums, static_cast<int64_t>(sums.size() * sizeof(float)));
    for (size_t i = 0; i < sums.size(); ++i) {
      ASSERT_NEAR(sums[i], expected[i], 2e-6 + 2e-5 * expected[i])
          << "round " << round << " at " << i << " q_len " << host.q_len << " kv_len "
          << host.kv_len << " window " << host.sliding_window;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaAttentionSumsTest, all_targets(), target_name);

#if defined(KVLAB_CUDA_KERNELS)
// What is wrong is said before anything is queued, so this needs no GPU.
TEST(CudaAttentionMassArgsTest, RefusesShapesItDoesNotTake) {
  CudaAttentionMassArgs args;
  args.mass.num_heads = 8;
  args.mass.num_kv_heads = 3;
  args.mass.head_dim = 64;
  args.mass.num_rows = args.mass.num_keys = 4;
  EXPECT_EQ(attention_mass_cuda(args, nullptr).code(), absl::StatusCode::kInvalidArgument);
  args.mass.num_kv_heads = 2;
  args.mass.head_dim = 60;
  EXPECT_EQ(attention_mass_cuda(args, nullptr).code(), absl::StatusCode::kInvalidArgument);
  args.mass.head_dim = 64;
  args.mass.keys.row_stride = 65;
  EXPECT_EQ(attention_mass_cuda(args, nullptr).code(), absl::StatusCode::kInvalidArgument);
}
#endif

}  // namespace
}  // namespace kvlab
