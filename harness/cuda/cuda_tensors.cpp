#include "harness/cuda/cuda_tensors.h"

#include <c10/cuda/CUDAStream.h>

#include <cstring>
#include <stdexcept>

#include "harness/base/status.h"

namespace kvlab {

at::Tensor aligned_rows(const at::Tensor& tensor) {
  constexpr int64_t kAlignment = 16;
  const int64_t element = tensor.element_size();
  const bool aligned = reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0 &&
                       tensor.stride(2) == 1 && tensor.stride(0) * element % kAlignment == 0 &&
                       tensor.stride(1) * element % kAlignment == 0;
  return aligned ? tensor : tensor.clone(at::MemoryFormat::Contiguous);
}

at::Tensor upload_bytes(const void* data, int64_t bytes, const at::Tensor& like) {
  // Pinned: the copy does not wait for the GPU, and the allocator keeps the memory until it is
  // done.
  at::Tensor host = at::empty({bytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(true));
  std::memcpy(host.data_ptr(), data, static_cast<size_t>(bytes));
  return host.to(like.device(), /*non_blocking=*/true);
}

void* current_stream(const at::Tensor& like) {
  return c10::cuda::getCurrentCUDAStream(like.device().index()).stream();
}

void throw_unless_ok(const absl::Status& status) {
  if (!status.ok()) {
    throw std::runtime_error(message_of(status));
  }
}

}  // namespace kvlab
