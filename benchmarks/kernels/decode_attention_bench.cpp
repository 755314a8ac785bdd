// One layer's decode attention with SmolLM2-135M's heads (9 query heads, 3 KV heads of 64), or
// Llama-3.1-8B's (32, 8 of 128).
#include "benchmarks/kernels/kernel_bench.h"
#include "harness/kernels/decode_attention.h"

namespace kvlab {
namespace {

void decode_layer(benchmark::State& state, ElementType type) {
  const int64_t arms = state.range(0);
  const int64_t len = state.range(1);
  const int64_t num_kv_heads = state.range(2);
  const int64_t group_size = state.range(3);
  const int64_t head_dim = state.range(4);
  const int64_t heads = arms * num_kv_heads;
  // Enough layers in turn that a short cache does not stay in the processor's caches.
  const int64_t layer_bytes = 2 * heads * len * head_dim * element_size(type);
  const int64_t layers = std::clamp<int64_t>((int64_t{256} << 20) / layer_bytes, 1, 30);
  const std::vector<char> cache = random_elements(type, layers * 2 * heads * len * head_dim);
  const std::vector<char> queries = random_elements(type, heads * group_size * head_dim);
  std::vector<char> output(queries.size());
  const int64_t run_bytes = len * head_dim * element_size(type);
  const int64_t group_bytes = group_size * head_dim * element_size(type);
  std::vector<std::vector<DecodeHead>> views(layers);
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t h = 0; h < heads; ++h) {
      const char* keys = cache.data() + (layer * heads + h) * 2 * run_bytes;
      views[layer].push_back({queries.data() + h * group_bytes, keys, keys + run_bytes, len,
                              nullptr, nullptr, 0, output.data() + h * group_bytes});
    }
  }
  measure(state, type, 4.0 * static_cast<double>(layers * heads * group_size * len * head_dim),
          static_cast<double>(layers * layer_bytes), [&] {
            for (const auto& view : views) {
              decode_attention({type, group_size, head_dim, 0.125F, view});
            }
          });
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"arms", "len", "kv_heads", "group", "head_dim"})
      ->Args({1, 4096, 3, 3, 64})
      ->Args({20, 128, 3, 3, 64})
      ->Args({12, 4096, 3, 3, 64})
      ->Args({1, 4096, 8, 4, 128})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(decode_layer, bf16, ElementType::kBFloat16)->Apply(shapes);
BENCHMARK_CAPTURE(decode_layer, fp32, ElementType::kFloat32)->Apply(shapes);

}  // namespace
}  // namespace kvlab
