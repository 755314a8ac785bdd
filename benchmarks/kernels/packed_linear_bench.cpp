// All linear layers of a decoding step of SmolLM2-135M (30 layers; 49,152 outputs), by rows.
#include "benchmarks/kernels/kernel_bench.h"
#include "harness/kernels/packed_linear.h"

namespace kvlab {
namespace {

struct Shape {
  int64_t out_features;
  int64_t in_features;
};
constexpr Shape kLayer[] = {{960, 576}, {576, 576}, {3072, 576}, {576, 1536}};
constexpr Shape kHead = {49152, 576};

PackedLinear make(ElementType type, const Shape& shape) {
  const std::vector<char> weights = random_elements(type, shape.out_features * shape.in_features);
  return PackedLinear::pack(type, weights.data(), shape.out_features, shape.in_features,
                            shape.in_features);
}

void decode_step_linears(benchmark::State& state, ElementType type) {
  const int64_t rows = state.range(0);
  std::vector<PackedLinear> linears;
  for (int layer = 0; layer < 30; ++layer) {
    for (const Shape& shape : kLayer) {
      linears.push_back(make(type, shape));
    }
  }
  linears.push_back(make(type, kHead));
  const std::vector<char> x = random_elements(type, rows * 1536);
  std::vector<float> y(rows * kHead.out_features);
  double bytes = 0;
  double flops = 0;
  for (const PackedLinear& linear : linears) {
    bytes += static_cast<double>(linear.packed_bytes());
    flops += 2.0 * static_cast<double>(rows * linear.out_features() * linear.in_features());
  }
  measure(state, type, flops, bytes, [&] {
    for (const PackedLinear& linear : linears) {
      linear.forward(x.data(), rows, 1536, y.data(), linear.out_features(), ElementType::kFloat32);
    }
  });
}

void prefill_linear(benchmark::State& state, ElementType type) {
  const Shape shape{state.range(0), state.range(1)};
  const int64_t rows = 2048;
  const PackedLinear linear = make(type, shape);
  const std::vector<char> x = random_elements(type, rows * shape.in_features);
  std::vector<char> y(rows * shape.out_features * element_size(type));
  measure(state, type, 2.0 * static_cast<double>(rows * shape.out_features * shape.in_features),
          static_cast<double>(linear.packed_bytes()), [&] {
            linear.forward(x.data(), rows, shape.in_features, y.data(), shape.out_features, type);
          });
}

BENCHMARK_CAPTURE(decode_step_linears, bf16, ElementType::kBFloat16)
    ->ArgName("rows")
    ->Arg(1)
    ->Arg(4)
    ->Arg(12)
    ->Arg(20)
    ->Arg(64)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_step_linears, fp32, ElementType::kFloat32)
    ->ArgName("rows")
    ->Arg(1)
    ->Arg(20)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prefill_linear, bf16, ElementType::kBFloat16)
    ->ArgNames({"out", "in"})
    ->Args({960, 576})
    ->Args({576, 576})
    ->Args({3072, 576})
    ->Args({576, 1536})
    ->Args({4096, 4096})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(prefill_linear, fp32, ElementType::kFloat32)
    ->ArgNames({"out", "in"})
    ->Args({3072, 576})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvlab
