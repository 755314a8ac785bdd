// Every way of computing attention against a loop in double precision.
#include "harness/model/attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace kvlab {
namespace {

struct Shape {
  int64_t num_heads, num_kv_heads, head_dim, q_len, kv_len, window;
};

at::Tensor random_tensor(std::vector<int64_t> shape, at::ScalarType type, int64_t seed) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  return at::randn(shape, generator).to(type);
}

ChunkAttentionArgs random_args(const Shape& shape, at::ScalarType type, int64_t seed) {
  ChunkAttentionArgs args;
  // Queries as the model has them: [q_len, heads, head_dim] in memory.
  args.queries =
      random_tensor({shape.q_len, shape.num_heads, shape.head_dim}, type, seed).transpose(0, 1);
  args.keys = random_tensor({shape.num_kv_heads, shape.kv_len, shape.head_dim}, type, seed + 1);
  args.values = random_tensor({shape.num_kv_heads, shape.kv_len, shape.head_dim}, type, seed + 2);
  args.scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  args.sliding_window = shape.window;
  args.want_logsumexp = true;
  return args;
}

struct Expected {
  at::Tensor output, logsumexp, sums;
};

Expected in_double(const ChunkAttentionArgs& args) {
  const int64_t q_len = args.queries.size(1);
  const int64_t kv_len = args.keys.size(1);
  const int64_t group = args.queries.size(0) / args.keys.size(0);
  const at::Tensor k = args.keys.to(at::kDouble).repeat_interleave(group, 0);
  const at::Tensor v = args.values.to(at::kDouble).repeat_interleave(group, 0);
  at::Tensor scores = at::matmul(args.queries.to(at::kDouble), k.transpose(1, 2)) * args.scale;
  at::Tensor visible = at::ones({q_len, kv_len}, at::kBool).tril(kv_len - q_len);
  if (args.sliding_window > 0) {
    visible = at::logical_and(
        visible,
        at::ones({q_len, kv_len}, at::kBool).triu(kv_len - q_len - args.sliding_window + 1));
  }
  scores = scores.masked_fill(at::logical_not(visible), -INFINITY);
  const at::Tensor weights = at::softmax(scores, -1);
  return {at::matmul(weights, v).transpose(0, 1), at::logsumexp(scores, {-1}), weights.sum(1)};
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b).abs().max().item<double>();
}

double tolerance(at::ScalarType type) { return type == at::kBFloat16 ? 3e-2 : 1e-5; }

std::vector<Shape> shapes() {
  std::vector<Shape> result = {
      {9, 3, 64, 33, 33, 0},    {9, 3, 64, 1, 50, 0},   {4, 4, 16, 7, 300, 0},
      {4, 1, 128, 130, 131, 0}, {2, 2, 80, 1, 1, 0},    {8, 1, 96, 40, 200, 0},
      {4, 2, 16, 60, 60, 24},   {4, 2, 16, 9, 100, 24}, {4, 2, 32, 5, 5, 1}};
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    Shape shape{};
    shape.num_kv_heads = 1 + random() % 3;
    shape.num_heads = shape.num_kv_heads * (1 + random() % 8);
    shape.head_dim = std::vector<int64_t>{8, 16, 64, 80, 128}[random() % 5];
    shape.q_len = 1 + random() % 70;
    shape.kv_len = shape.q_len + (random() % 2 == 0 ? 0 : random() % 200);
    shape.window = random() % 3 == 0 ? 1 + random() % 40 : 0;
    result.push_back(shape);
  }
  return result;
}

TEST(Attention, EveryRouteEqualsDoublePrecision) {
  int64_t seed = 0;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const Shape& shape : shapes()) {
      SCOPED_TRACE(testing::Message()
                   << shape.num_heads << "/" << shape.num_kv_heads << " heads of " << shape.head_dim
                   << ", " << shape.q_len << " x " << shape.kv_len << ", window " << shape.window);
      const ChunkAttentionArgs args = random_args(shape, type, seed += 3);
      const Expected expected = in_double(args);
      std::vector<ChunkAttention> results = {chunk_attention(args),
                                             chunk_attention_reference(args)};
      if (shape.window == 0) {
        results.push_back(chunk_attention_sdpa(args));
      }
      for (size_t i = 0; i < results.size(); ++i) {
        EXPECT_LT(difference(results[i].output, expected.output), tolerance(type)) << "route " << i;
        EXPECT_LT(difference(results[i].logsumexp, expected.logsumexp), tolerance(type))
            << "route " << i;
        EXPECT_EQ(results[i].output.scalar_type(), type);
        EXPECT_TRUE(results[i].output.is_contiguous());
      }
      for (const bool reference : {false, true}) {
        at::Tensor sums = at::zeros({shape.num_heads, shape.kv_len}, at::kFloat);
        (reference ? add_chunk_attention_sums_reference : add_chunk_attention_sums)(
            args, results[0].logsumexp, sums);
        EXPECT_LT(difference(sums, expected.sums), tolerance(type) * 10) << reference;
      }
    }
  }
}

TEST(Attention, TheReferenceDifferentiatesInDouble) {
  ChunkAttentionArgs args = random_args({4, 2, 8, 3, 9, 0}, at::kDouble, 5);
  const at::Tensor queries = args.queries.detach().contiguous().requires_grad_();
  args.queries = queries;
  args.want_logsumexp = false;
  const ChunkAttention attended = chunk_attention(args);
  EXPECT_EQ(attended.output.scalar_type(), at::kDouble);
  (attended.output * attended.output).sum().backward();
  const at::Tensor gradient = queries.grad();
  const c10::NoGradGuard no_grad;
  constexpr double kStep = 1e-6;
  for (int64_t i = 0; i < queries.numel(); i += 7) {
    const auto value = [&](double step) {
      ChunkAttentionArgs moved = args;
      moved.queries = queries.detach().clone();  // contiguous, as `queries`
      moved.queries.view(-1)[i] += step;
      const at::Tensor output = chunk_attention(moved).output;
      return (output * output).sum().item<double>();
    };
    EXPECT_NEAR(gradient.view(-1)[i].item<double>(), (value(kStep) - value(-kStep)) / (2 * kStep),
                1e-6);
  }
}

}  // namespace
}  // namespace kvlab
