// All low-rank updates of LookaheadKV's rows in SmolLM2-135M: rank 8, seven targets, 30 layers.
#include "benchmarks/kernels/kernel_bench.h"
#include "harness/kernels/low_rank_update.h"

namespace kvlab {
namespace {

constexpr int64_t kRank = 8;
constexpr int64_t kLayers = 30;
struct Shape {
  int64_t out_features;
  int64_t in_features;
};
constexpr Shape kTargets[] = {{576, 576},  {192, 576},  {192, 576}, {576, 576},
                              {1536, 576}, {1536, 576}, {576, 1536}};

LowRankUpdate make(const Shape& shape) {
  const std::vector<char> a = random_elements(ElementType::kFloat32, kRank * shape.in_features);
  const std::vector<char> b = random_elements(ElementType::kFloat32, shape.out_features * kRank);
  return LowRankUpdate::pack(reinterpret_cast<const float*>(a.data()),
                             reinterpret_cast<const float*>(b.data()), kRank, shape.out_features,
                             shape.in_features, /*scale=*/4);
}

void low_rank_updates(benchmark::State& state, ElementType type) {
  const int64_t rows = state.range(0);
  std::vector<LowRankUpdate> updates;
  double numbers = 0;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    for (const Shape& shape : kTargets) {
      updates.push_back(make(shape));
      numbers += static_cast<double>(kRank * (shape.in_features + shape.out_features));
    }
  }
  constexpr int64_t kWidest = 1536;
  const std::vector<char> x = random_elements(type, rows * kWidest);
  std::vector<char> y(rows * kWidest * element_size(type));
  measure(state, type, 2.0 * static_cast<double>(rows) * numbers, sizeof(float) * numbers, [&] {
    for (const LowRankUpdate& update : updates) {
      update.add_to(type, x.data(), rows, kWidest, y.data(), kWidest);
    }
  });
}

BENCHMARK_CAPTURE(low_rank_updates, bf16, ElementType::kBFloat16)
    ->ArgName("rows")
    ->Arg(8)
    ->Arg(32)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(low_rank_updates, fp32, ElementType::kFloat32)
    ->ArgName("rows")
    ->Arg(32)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace kvlab
