#include "harness/cache/gather_cuda_at.h"

#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

#include "harness/cuda/cuda_tensors.h"
#include "harness/kernels/cuda/gather_cuda.h"

namespace kvlab {
namespace {

// One allocation cut into heads of as many entries as `kept` has.
std::vector<at::Tensor> empty_heads(const std::vector<std::vector<int32_t>>& kept,
                                    const at::Tensor& like) {
  int64_t total = 0;
  for (const auto& positions : kept) {
    total += static_cast<int64_t>(positions.size());
  }
  const at::Tensor storage = at::empty({total, like.size(2)}, like.options());
  std::vector<at::Tensor> heads;
  int64_t begin = 0;
  for (const auto& positions : kept) {
    const auto count = static_cast<int64_t>(positions.size());
    heads.push_back(storage.narrow(0, begin, count));
    begin += count;
  }
  return heads;
}

}  // namespace

GatheredLayer gather_layer_cuda(const LayerState& layer,
                                const std::vector<std::vector<int32_t>>& kept) {
  const at::Tensor keys = aligned_rows(layer.keys);
  const at::Tensor values = aligned_rows(layer.values);
  const c10::cuda::CUDAGuard guard(keys.device());
  const int64_t element = keys.element_size();
  std::vector<int32_t> positions;
  for (const auto& head : kept) {
    positions.insert(positions.end(), head.begin(), head.end());
  }
  const at::Tensor device_positions = upload<int32_t>(positions, keys);
  const auto* next = static_cast<const int32_t*>(device_positions.const_data_ptr());
  GatheredLayer result{empty_heads(kept, keys), empty_heads(kept, values)};
  std::vector<GatherHead> heads;
  CudaGatherArgs args;
  for (size_t h = 0; h < kept.size(); ++h) {
    const auto head = static_cast<int64_t>(h);
    GatherHead& gather = heads.emplace_back();
    gather.keys = keys.select(0, head).const_data_ptr();
    gather.values = values.select(0, head).const_data_ptr();
    gather.key_stride_bytes = keys.stride(1) * element;
    gather.value_stride_bytes = values.stride(1) * element;
    gather.positions = next;
    gather.count = static_cast<int64_t>(kept[h].size());
    gather.out_keys = result.keys[h].data_ptr();
    gather.out_values = result.values[h].data_ptr();
    next += gather.count;
    args.largest_count = std::max(args.largest_count, gather.count);
  }
  const at::Tensor device_heads = upload<GatherHead>(heads, keys);
  args.heads = static_cast<const GatherHead*>(device_heads.const_data_ptr());
  args.num_heads = static_cast<int64_t>(heads.size());
  args.row_bytes = keys.size(2) * element;
  throw_unless_ok(gather_cuda(args, current_stream(keys)));
  return result;
}

}  // namespace kvlab
