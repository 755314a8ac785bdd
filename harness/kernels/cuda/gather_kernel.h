// The work of gather_cuda: a block copies up to kGatherRows entries of one head, 16 bytes a thread.
#pragma once

#include "harness/kernels/cuda/device_math.h"
#include "harness/kernels/cuda/gather_cuda.h"

namespace kvlab {

constexpr int64_t kGatherRows = 32;

struct GatherKernel {
  struct Params {
    const GatherHead* heads;
    int64_t row_bytes;
  };
  static constexpr int kThreads = 128;
  static constexpr int kSharedBytes = static_cast<int>(kGatherRows) * 4;

  template <class Block>
  KVLAB_DEVICE static void run(Block& block, char* shared, const Params& p) {
    const GatherHead head = p.heads[block.x()];
    const int64_t begin = block.y() * kGatherRows;
    if (begin >= head.count) {
      return;
    }
    const int rows = static_cast<int>(smaller(kGatherRows, head.count - begin));
    auto* positions = reinterpret_cast<int32_t*>(shared);
    block.each_thread([&](int thread) {
      if (thread < rows) {
        positions[thread] = head.positions[begin + thread];
      }
    });
    const int vectors = static_cast<int>(p.row_bytes / kVectorBytes);
    block.each_thread([&](int thread) {
      for (int i = thread; i < rows * vectors; i += kThreads) {
        const int64_t from = positions[i / vectors];
        const int64_t offset = static_cast<int64_t>(i % vectors) * kVectorBytes;
        const int64_t to = (begin + i / vectors) * p.row_bytes + offset;
        store_vector(static_cast<char*>(head.out_keys) + to,
                     load_vector(static_cast<const char*>(head.keys) +
                                 from * head.key_stride_bytes + offset));
        store_vector(static_cast<char*>(head.out_values) + to,
                     load_vector(static_cast<const char*>(head.values) +
                                 from * head.value_stride_bytes + offset));
      }
    });
  }
};

// Launches take at most 65,535 blocks in y: 2,097,120 entries a head.
constexpr int64_t kGatherMaxCount = 65535 * kGatherRows;

template <class Launcher>
void launch_gather_on(Launcher& launcher, const CudaGatherArgs& args) {
  launcher.template launch<GatherKernel>(
      {args.num_heads, divide_up(args.largest_count, kGatherRows), 1},
      {args.heads, args.row_bytes});
}

}  // namespace kvlab
