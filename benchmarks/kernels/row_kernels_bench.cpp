// The steps between the matrix products of SmolLM2-135M, one layer's call: SiLU over the MLP's
// inner rows, the norm that adds the last product, the rotation of all query heads.
#include "benchmarks/kernels/kernel_bench.h"
#include "harness/model/row_kernels.h"

namespace kvlab {
namespace {

constexpr int64_t kHidden = 576;
constexpr int64_t kInner = 1536;
constexpr int64_t kHeads = 9;
constexpr int64_t kHeadDim = 64;

void silu_mul(benchmark::State& state, ElementType type) {
  const int64_t rows = state.range(0);
  const std::vector<char> gate_up = random_elements(type, rows * 2 * kInner);
  std::vector<char> out(rows * kInner * element_size(type));
  SiluMulArgs args;
  args.type = type;
  args.rows = rows;
  args.size = kInner;
  args.gate = gate_up.data();
  args.up = gate_up.data() + kInner * element_size(type);
  args.in_row_stride = 2 * kInner;
  args.out = out.data();
  constexpr double kFlops = 25;  // limits and polynomial of the exponential 20, then 5
  const auto elements = static_cast<double>(rows * kInner);
  measure(state, type, kFlops * elements, 3 * elements * static_cast<double>(element_size(type)),
          [&] { silu_mul_rows(args); });
}

void add_rms_norm(benchmark::State& state, ElementType type) {
  const int64_t rows = state.range(0);
  std::vector<char> x = random_elements(type, rows * kHidden);
  const std::vector<char> delta(rows * kHidden * element_size(type));  // zeros: x stays as it is
  const std::vector<char> weight = random_elements(type, kHidden);
  std::vector<char> out(rows * kHidden * element_size(type));
  RmsNormArgs args;
  args.type = type;
  args.rows = rows;
  args.size = kHidden;
  args.eps = 1e-5F;
  args.x = x.data();
  args.delta = delta.data();
  args.weight = weight.data();
  args.out = out.data();
  constexpr double kFlops = 5;
  const auto elements = static_cast<double>(rows * kHidden);
  measure(state, type, kFlops * elements, 4 * elements * static_cast<double>(element_size(type)),
          [&] { rms_norm_rows(args); });
}

void rotate(benchmark::State& state, ElementType type) {
  const int64_t rows = state.range(0);
  const int64_t size = kHeads * kHeadDim;
  const std::vector<char> x = random_elements(type, rows * size);
  std::vector<char> out(rows * size * element_size(type));
  const std::vector<float> angles(rows * kHeadDim / 2, 0.5F);
  RotateArgs args;
  args.type = type;
  args.rows = rows;
  args.num_heads = kHeads;
  args.head_dim = kHeadDim;
  args.x = {x.data(), kHeadDim, size};
  args.out = {out.data(), kHeadDim, size};
  args.cos = angles.data();
  args.sin = angles.data();
  constexpr double kFlops = 3;
  const auto elements = static_cast<double>(rows * size);
  measure(state, type, kFlops * elements,
          elements * static_cast<double>(2 * element_size(type) + sizeof(float)),
          [&] { rotate_rows(args); });
}

void blocks_and_prompt(benchmark::internal::Benchmark* bench) {
  bench->ArgName("rows")->Arg(96)->Arg(4096)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(silu_mul, bf16, ElementType::kBFloat16)->Apply(blocks_and_prompt);
BENCHMARK_CAPTURE(silu_mul, fp32, ElementType::kFloat32)->Apply(blocks_and_prompt);
BENCHMARK_CAPTURE(add_rms_norm, bf16, ElementType::kBFloat16)->Apply(blocks_and_prompt);
BENCHMARK_CAPTURE(add_rms_norm, fp32, ElementType::kFloat32)->Apply(blocks_and_prompt);
BENCHMARK_CAPTURE(rotate, bf16, ElementType::kBFloat16)->Apply(blocks_and_prompt);
BENCHMARK_CAPTURE(rotate, fp32, ElementType::kFloat32)->Apply(blocks_and_prompt);

}  // namespace
}  // namespace kvlab
