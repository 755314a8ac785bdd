#include "harness/kernels/cuda/gather_cuda.h"

#include <algorithm>

#include "harness/kernels/cuda/gather_kernel.h"
#include "tests/harness/kernels/cuda/kernel_target.h"
#include "tests/harness/kernels/kernel_test_util.h"

namespace kvlab {
namespace {

class CudaGatherTest : public TargetTest {
 protected:
  void run(const CudaGatherArgs& args) {
    if (on_gpu()) {
#if defined(KVLAB_CUDA_KERNELS)
      const absl::Status status = gather_cuda(args, nullptr);
      EXPECT_TRUE(status.ok()) << status;
#endif
    } else {
      HostLauncher emulated = launcher();
      launch_gather_on(emulated, args);
    }
  }
};

TEST_P(CudaGatherTest, CopiesTheChosenRowsOfEveryHead) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 60; ++round) {
    TargetMemory memory(GetParam());
    const ElementType type = pick_of(random, {ElementType::kFloat32, ElementType::kBFloat16});
    const int64_t head_dim = pick_of<int64_t>(random, {64, 80, 96, 128, 256, 8});
    const int64_t row_bytes = head_dim * element_size(type);
    const int64_t prompt_len = pick(random, 1, 300);
    const int64_t num_heads = pick(random, 1, 9);
    const int64_t stride = head_dim + 8 * pick(random, 0, 2);
    const Values keys = Values::random(type, num_heads * prompt_len * stride, random);
    const Values values = Values::random(type, num_heads * prompt_len * head_dim, random);
    const auto* device_keys =
        static_cast<const char*>(memory.put(keys.data(), keys.size() * element_size(type)));
    const auto* device_values =
        static_cast<const char*>(memory.put(values.data(), values.size() * element_size(type)));
    std::vector<std::vector<int32_t>> kept(num_heads);
    std::vector<GatherHead> heads;
    CudaGatherArgs args;
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t share = pick(random, 0, 100);  // 0: the head keeps nothing
      for (int64_t i = 0; i < prompt_len; ++i) {
        if (pick(random, 0, 99) < share) {
          kept[h].push_back(static_cast<int32_t>(i));
        }
      }
      const auto count = static_cast<int64_t>(kept[h].size());
      heads.push_back({device_keys + h * prompt_len * stride * element_size(type),
                       device_values + h * prompt_len * row_bytes, stride * element_size(type),
                       row_bytes, memory.put(kept[h]), count,
                       memory.put(nullptr, count * row_bytes),
                       memory.put(nullptr, count * row_bytes)});
      args.largest_count = std::max(args.largest_count, count);
    }
    args.heads = memory.put(heads);
    args.num_heads = num_heads;
    args.row_bytes = row_bytes;
    run(args);
    for (int64_t h = 0; h < num_heads; ++h) {
      Values out_keys(type, heads[h].count * head_dim);
      Values out_values(type, heads[h].count * head_dim);
      memory.get(out_keys.data(), heads[h].out_keys, heads[h].count * row_bytes);
      memory.get(out_values.data(), heads[h].out_values, heads[h].count * row_bytes);
      for (int64_t i = 0; i < heads[h].count; ++i) {
        const int64_t row = h * prompt_len + kept[h][i];
        for (int64_t d = 0; d < head_dim; ++d) {
          ASSERT_EQ(out_keys.at(i * head_dim + d), keys.at(row * stride + d));
          ASSERT_EQ(out_values.at(i * head_dim + d), values.at(row * head_dim + d));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CudaGatherTest, all_targets(), target_name);

#if defined(KVLAB_CUDA_KERNELS)
// What is wrong is said before anything is queued, so this needs no GPU.
TEST(CudaGatherArgsTest, RefusesRowsThatAreNoMultipleOf16Bytes) {
  CudaGatherArgs args;
  args.num_heads = 1;
  args.row_bytes = 24;
  EXPECT_EQ(gather_cuda(args, nullptr).code(), absl::StatusCode::kInvalidArgument);
}
#endif

}  // namespace
}  // namespace kvlab
