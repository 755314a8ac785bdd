// One layer's scoring of a prompt: attention mass of a few rows, H2O's sums over all rows, and what
// turns scores into positions. SmolLM2-135M's heads (9, 3 of 64), Llama-3.1-8B's (32, 8 of 128).
#include "benchmarks/kernels/kernel_bench.h"
#include "methods/attention_mass/attention_mass.h"
#include "methods/attention_mass/attention_sums.h"
#include "methods/attention_mass/score_reduction.h"
#include "methods/attention_mass/top_k.h"

namespace kvlab {
namespace {

void mass_layer(benchmark::State& state, ElementType type) {
  AttentionMassArgs args;
  args.type = type;
  args.num_rows = state.range(0);
  args.num_keys = state.range(1);
  args.num_heads = state.range(2);
  args.num_kv_heads = state.range(3);
  args.head_dim = state.range(4);
  args.scale = 0.125F;
  const std::vector<char> queries =
      random_elements(type, args.num_heads * args.num_rows * args.head_dim, 1);
  const std::vector<char> keys =
      random_elements(type, args.num_kv_heads * args.num_keys * args.head_dim, 2);
  std::vector<float> mass(args.num_heads * args.num_keys);
  args.queries = {queries.data(), args.num_rows * args.head_dim, args.head_dim};
  args.keys = {keys.data(), args.num_keys * args.head_dim, args.head_dim};
  args.mass = mass.data();
  measure(state, type,
          2.0 * static_cast<double>(args.num_heads * args.num_rows * args.num_keys * args.head_dim),
          static_cast<double>(queries.size() + keys.size() + mass.size() * sizeof(float)),
          [&] { attention_mass(args); });
}

double query_and_key_bytes(const AttentionSumsArgs& args) {
  return static_cast<double>((args.num_heads * args.q_len + args.num_kv_heads * args.kv_len) *
                             args.head_dim * element_size(args.type));
}

// Fills in the arrays of `args`.
void measure_sums(benchmark::State& state, AttentionSumsArgs args, double flops, double bytes) {
  args.scale = 0.125F;
  const std::vector<char> queries =
      random_elements(args.type, args.num_heads * args.q_len * args.head_dim, 1);
  const std::vector<char> keys =
      random_elements(args.type, args.num_kv_heads * args.kv_len * args.head_dim, 2);
  const std::vector<float> logsumexp(args.num_heads * args.q_len, 40.0F);
  std::vector<float> sums(args.num_heads * args.kv_len);
  args.queries = {queries.data(), args.q_len * args.head_dim, args.head_dim};
  args.keys = {keys.data(), args.kv_len * args.head_dim, args.head_dim};
  args.logsumexp = logsumexp.data();
  args.sums = sums.data();
  args.sums_head_stride = args.kv_len;
  measure(state, args.type, flops, bytes, [&] { add_attention_sums(args); });
}

// The mass of rows that have attended: their denominators are known.
void attended_mass_layer(benchmark::State& state, ElementType type) {
  AttentionSumsArgs args;
  args.type = type;
  args.q_len = state.range(0);
  args.kv_len = state.range(1);
  args.num_heads = state.range(2);
  args.num_kv_heads = state.range(3);
  args.head_dim = state.range(4);
  args.rows_follow_keys = true;
  const auto sums = static_cast<double>(args.num_heads * args.kv_len);
  measure_sums(state, args, 2.0 * sums * static_cast<double>(args.q_len * args.head_dim),
               query_and_key_bytes(args) + sums * sizeof(float));
}

void sums_layer(benchmark::State& state, ElementType type) {
  AttentionSumsArgs args;
  args.type = type;
  args.q_len = args.kv_len = state.range(0);
  args.num_heads = 9;
  args.num_kv_heads = 3;
  args.head_dim = 64;
  const auto len = static_cast<double>(args.kv_len);
  measure_sums(state, args, len * (len + 1) * static_cast<double>(args.num_heads * args.head_dim),
               query_and_key_bytes(args));
}

// Group mean, max pooling with kernel 7 and the best 128 of each KV head.
void select_positions(benchmark::State& state) {
  const int64_t num_keys = state.range(0);
  const std::vector<char> bytes = random_elements(ElementType::kFloat32, 9 * num_keys);
  const auto* scores = reinterpret_cast<const float*>(bytes.data());
  std::vector<float> reduced(3 * num_keys);
  std::vector<float> pooled(3 * num_keys);
  measure(state, ElementType::kFloat32, 0, static_cast<double>(bytes.size()), [&] {
    reduce_group(GroupReduction::kMean, scores, 9, 3, num_keys, reduced.data());
    pool_scores(PoolKind::kMax, 7, reduced.data(), 3, num_keys, pooled.data());
    for (int64_t head = 0; head < 3; ++head) {
      benchmark::DoNotOptimize(
          top_positions(std::span(pooled).subspan(head * num_keys, num_keys), 128));
    }
  });
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "keys", "heads", "kv_heads", "head_dim"})
      ->Args({1, 4096, 9, 3, 64})
      ->Args({8, 4096, 9, 3, 64})
      ->Args({32, 4096, 9, 3, 64})
      ->Args({32, 8192, 32, 8, 128})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(mass_layer, bf16, ElementType::kBFloat16)->Apply(shapes);
BENCHMARK_CAPTURE(mass_layer, fp32, ElementType::kFloat32)->Apply(shapes);
BENCHMARK_CAPTURE(attended_mass_layer, bf16, ElementType::kBFloat16)->Apply(shapes);
BENCHMARK_CAPTURE(attended_mass_layer, fp32, ElementType::kFloat32)->Apply(shapes);
BENCHMARK_CAPTURE(sums_layer, bf16, ElementType::kBFloat16)
    ->ArgName("len")
    ->Arg(4096)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(sums_layer, fp32, ElementType::kFloat32)
    ->ArgName("len")
    ->Arg(4096)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(select_positions)
    ->ArgName("keys")
    ->Arg(4096)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvlab
