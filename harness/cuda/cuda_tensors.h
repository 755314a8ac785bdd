// Our CUDA kernels on tensors. Declared in every build; defined, and called, only with KVLAB_CUDA.
// Errors are thrown as ATen throws its own, with the kernel's message; callers that stand at a
// border turn both into a Status.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/status.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <span>
#include <vector>

namespace kvlab {

#if defined(KVLAB_CUDA)
inline constexpr bool kCudaKernels = true;
#else
inline constexpr bool kCudaKernels = false;
#endif

// True where the kernels take `tensor` [.., rows, head_dim]: on a GPU, float32 or bfloat16,
// head_dim a multiple of 8 up to 256, no gradient.
inline bool use_cuda_kernels(const at::Tensor& tensor) {
  if constexpr (kCudaKernels) {
    const auto type = tensor.scalar_type();
    return tensor.is_cuda() && (type == at::kFloat || type == at::kBFloat16) &&
           tensor.size(-1) % 8 == 0 && tensor.size(-1) <= 256 &&
           !(c10::GradMode::is_enabled() && tensor.requires_grad());
  } else {
    return false;
  }
}

// `tensor` [heads, rows, head_dim], copied where its rows do not start on 16 bytes.
at::Tensor aligned_rows(const at::Tensor& tensor);

// A copy of `bytes` bytes on the device of `like`, as uint8; in order with its current stream.
at::Tensor upload_bytes(const void* data, int64_t bytes, const at::Tensor& like);
template <typename T>
at::Tensor upload(std::span<const T> values, const at::Tensor& like) {
  return upload_bytes(values.data(), static_cast<int64_t>(values.size_bytes()), like);
}

// The current stream of the tensor's device, a cudaStream_t.
void* current_stream(const at::Tensor& like);

void throw_unless_ok(const absl::Status& status);

}  // namespace kvlab
