// One layer's causal attention: SmolLM2-135M's heads (9, 3 of 64), Llama-3.1-8B's (32, 8 of 128).
#include "benchmarks/kernels/kernel_bench.h"
#include "harness/kernels/prefill_attention.h"

namespace kvlab {
namespace {

void prefill_layer(benchmark::State& state, ElementType type) {
  PrefillAttentionArgs args;
  args.type = type;
  args.q_len = state.range(0);
  args.kv_len = state.range(1);
  args.num_heads = state.range(2);
  args.num_kv_heads = state.range(3);
  args.head_dim = state.range(4);
  args.scale = 0.125F;
  const std::vector<char> queries =
      random_elements(type, args.num_heads * args.q_len * args.head_dim, 1);
  const std::vector<char> keys =
      random_elements(type, args.num_kv_heads * args.kv_len * args.head_dim, 2);
  const std::vector<char> values =
      random_elements(type, args.num_kv_heads * args.kv_len * args.head_dim, 3);
  std::vector<char> output(queries.size());
  args.queries = {queries.data(), args.q_len * args.head_dim, args.head_dim};
  args.keys = {keys.data(), args.kv_len * args.head_dim, args.head_dim};
  args.values = {values.data(), args.kv_len * args.head_dim, args.head_dim};
  args.output = {output.data(), args.q_len * args.head_dim, args.head_dim};
  const auto prefix = static_cast<double>(args.kv_len - args.q_len);
  const auto rows = static_cast<double>(args.q_len);
  const double pairs = rows * prefix + rows * (rows + 1) / 2;  // that causality lets meet
  measure(state, type, 4.0 * pairs * static_cast<double>(args.num_heads * args.head_dim),
          static_cast<double>(2 * queries.size() + keys.size() + values.size()),
          [&] { prefill_attention(args); });
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"q", "kv", "heads", "kv_heads", "head_dim"})
      ->Args({4096, 4096, 9, 3, 64})
      ->Args({2048, 4096, 9, 3, 64})
      ->Args({8000, 8000, 9, 3, 64})
      ->Args({2048, 2048, 32, 8, 128})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(prefill_layer, bf16, ElementType::kBFloat16)->Apply(shapes);
BENCHMARK_CAPTURE(prefill_layer, fp32, ElementType::kFloat32)->Apply(shapes);

}  // namespace
}  // namespace kvlab
