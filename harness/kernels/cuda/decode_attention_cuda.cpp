#include "harness/kernels/cuda/decode_attention_cuda.h"

#include "harness/base/status.h"
#include "harness/kernels/cuda/cuda_device.h"
#include "harness/kernels/cuda/decode_attention_kernel.h"
#include "harness/kernels/cuda/launches.h"

namespace kvlab {

int64_t cuda_decode_scratch_bytes(const CudaDecodeArgs& args) {
  const int64_t chunks = decode_max_chunks(args);
  return chunks <= 1 ? 0 : args.num_heads * chunks * args.group_size * (args.head_dim + 2) * 4;
}

absl::Status decode_attention_cuda(const CudaDecodeArgs& args, void* stream) {
  if (args.head_dim < 8 || args.head_dim % 8 != 0 || args.head_dim > kDecodeMaxHeadDim) {
    return invalid_argument(
        "decode attention on the GPU: the head dimension is {}, must be a multiple of 8 up to {}",
        args.head_dim, kDecodeMaxHeadDim);
  }
  if (args.group_size < 1 || args.group_size > 64) {
    return invalid_argument("decode attention on the GPU: {} query heads a KV head, at most 64",
                            args.group_size);
  }
  if (args.longest < 1) {
    return invalid_argument("decode attention on the GPU: the longest cache has {} entries",
                            args.longest);
  }
  if (cuda_decode_scratch_bytes(args) > 0 && args.scratch == nullptr) {
    return invalid_argument("decode attention on the GPU: no scratch memory");
  }
  return cuda_status(launch_decode_attention(args, stream), "decode attention");
}

}  // namespace kvlab
