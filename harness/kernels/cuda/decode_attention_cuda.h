// Attention of single tokens over ragged caches on the GPU: decode_attention.h for device memory.
#pragma once

#include <absl/status/status.h>

#include <cstdint>

#include "harness/kernels/decode_attention.h"
#include "harness/kernels/element.h"

namespace kvlab {

struct CudaDecodeArgs {
  ElementType type = ElementType::kFloat32;
  int64_t group_size = 0;  // at most 64
  int64_t head_dim = 0;    // a multiple of 8, at most 256
  float scale = 1;
  const DecodeHead* heads = nullptr;  // device array; all its pointers to device memory, 16-byte
                                      // aligned; no head without entries
  int64_t num_heads = 0;
  int64_t longest = 0;      // entries of the longest head
  void* scratch = nullptr;  // device, cuda_decode_scratch_bytes(), 16-byte aligned
};

// Bytes of scratch memory; 0 where no head is long enough to be divided.
int64_t cuda_decode_scratch_bytes(const CudaDecodeArgs& args);

// Softmax and sums in float32, one rounding at the end. A head's result depends on that head alone,
// bit for bit. Queued on `stream` (a cudaStream_t; null: the default stream). Invalid argument for
// a shape it does not take, internal where the launch fails.
absl::Status decode_attention_cuda(const CudaDecodeArgs& args, void* stream);

}  // namespace kvlab
