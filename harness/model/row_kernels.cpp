#include "harness/model/row_kernels.h"

#include <algorithm>

#include "harness/base/check.h"
#include "harness/kernels/cpu_level.h"
#include "harness/kernels/parallel.h"
#include "harness/model/row_kernels_dispatch.h"

namespace kvlab {
namespace {

constexpr int64_t kElementsPerTask = 16384;
constexpr int64_t kMaxHeadDim = 1024;

internal::RowKernels kernels(ElementType type) {
#if defined(__x86_64__)
  if (cpu_level() >= CpuLevel::kAvx512) {
    return internal::avx512_row_kernels(type);
  }
  if (cpu_level() == CpuLevel::kAvx2) {
    return internal::avx2_row_kernels(type);
  }
#endif
  return internal::portable_row_kernels(type);
}

// Small calls (decoding) stay on the caller's thread.
template <typename Body>
void for_row_blocks(int64_t rows, int64_t elements_per_row, Body&& body) {
  const int64_t block =
      std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, elements_per_row));
  if (rows <= block) {
    body(0, rows);
    return;
  }
  parallel_for((rows + block - 1) / block, [&](int64_t task, int /*thread*/) {
    body(task * block, std::min(rows, (task + 1) * block));
  });
}

}  // namespace

void rms_norm_rows(const RmsNormArgs& args) {
  const auto run = kernels(args.type).rms_norm;
  for_row_blocks(args.rows, args.size, [&](int64_t begin, int64_t end) { run(args, begin, end); });
}

void rotate_rows(const RotateArgs& args) {
  KVLAB_CHECK(args.head_dim <= kMaxHeadDim);
  const auto run = kernels(args.type).rotate;
  for_row_blocks(args.rows, args.num_heads * args.head_dim,
                 [&](int64_t begin, int64_t end) { run(args, begin, end); });
}

void silu_mul_rows(const SiluMulArgs& args) {
  const auto run = kernels(args.type).silu_mul;
  for_row_blocks(args.rows, args.size, [&](int64_t begin, int64_t end) { run(args, begin, end); });
}

}  // namespace kvlab
