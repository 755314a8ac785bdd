#include "harness/model/attention_cuda_at.h"

#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <optional>
#include <string>

#include "harness/base/status.h"
#include "harness/cuda/cuda_tensors.h"
#include "harness/kernels/cuda/cuda_device.h"
#include "harness/kernels/cuda/decode_attention_cuda.h"
#include "harness/model/layer_ops.h"
#include "methods/attention_mass/cuda/attention_mass_cuda.h"

namespace kvlab {

absl::Status prepare_cuda_attention(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  if (const std::optional<std::string> reason = cuda_unavailable_reason()) {
    return failed_precondition("{}; use the device cpu", *reason);
  }
  if (head_dim % 8 != 0 || head_dim > 256) {
    return unimplemented(
        "on a GPU the head dimension must be a multiple of 8 up to 256, the model has {}: no fused "
        "attention takes it, and the unfused one holds every score in memory; use the device cpu",
        head_dim);
  }
  if (num_heads > 16 * num_kv_heads) {
    return unimplemented("on a GPU at most 16 query heads may share a KV head, the model has {}",
                         num_heads / num_kv_heads);
  }
  at::globalContext().setSDPUseMath(false);
  return absl::OkStatus();
}

void decode_attention_cuda_at(const DecodeAttentionArgs& args, const at::Tensor& queries) {
  const c10::cuda::CUDAGuard guard(queries.device());
  const at::Tensor heads = upload(args.heads, queries);
  CudaDecodeArgs kernel;
  kernel.type = args.type;
  kernel.group_size = args.group_size;
  kernel.head_dim = args.head_dim;
  kernel.scale = args.scale;
  kernel.heads = static_cast<const DecodeHead*>(heads.const_data_ptr());
  kernel.num_heads = static_cast<int64_t>(args.heads.size());
  for (const DecodeHead& head : args.heads) {
    kernel.longest = std::max(kernel.longest, head.prompt_len + head.new_len);
  }
  const at::Tensor scratch =
      at::empty({cuda_decode_scratch_bytes(kernel)}, queries.options().dtype(at::kByte));
  kernel.scratch = scratch.numel() == 0 ? nullptr : scratch.data_ptr();
  throw_unless_ok(decode_attention_cuda(kernel, current_stream(queries)));
}

void add_chunk_attention_sums_cuda(const ChunkAttentionArgs& args, const at::Tensor& logsumexp,
                                   const at::Tensor& sums) {
  const c10::cuda::CUDAGuard guard(args.queries.device());
  const at::Tensor queries = aligned_rows(args.queries);
  const at::Tensor keys = aligned_rows(args.keys);
  const at::Tensor row_sums = logsumexp.contiguous();
  AttentionSumsArgs kernel;
  kernel.type = element_type(queries.scalar_type());
  kernel.num_heads = queries.size(0);
  kernel.num_kv_heads = keys.size(0);
  kernel.head_dim = queries.size(2);
  kernel.q_len = queries.size(1);
  kernel.kv_len = keys.size(1);
  kernel.scale = static_cast<float>(args.scale);
  kernel.sliding_window = args.sliding_window;
  kernel.queries = head_rows(queries);
  kernel.keys = head_rows(keys);
  kernel.logsumexp = row_sums.const_data_ptr<float>();
  kernel.sums = sums.data_ptr<float>();
  kernel.sums_head_stride = sums.stride(0);
  throw_unless_ok(add_attention_sums_cuda(kernel, current_stream(queries)));
}

}  // namespace kvlab
