// TensorStrip on the GPU. Only for .cu files.
#pragma once

#include <cuda_bf16.h>
#include <mma.h>

#include "harness/kernels/cuda/launch.cuh"
#include "methods/attention_mass/cuda/score_tile.h"

namespace kvlab {

template <int kThreads>
struct TensorStrip<GpuBlock<kThreads>> {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sums[4];

  KVLAB_DEVICE void clear() {
    KVLAB_UNROLL
    for (auto& sum : sums) {
      nvcuda::wmma::fill_fragment(sum, 0.0F);
    }
  }
  KVLAB_DEVICE void multiply_add(const BFloat16* rows, const BFloat16* keys, int stride) {
    using nvcuda::wmma::col_major;
    using nvcuda::wmma::fragment;
    using nvcuda::wmma::row_major;
    fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __nv_bfloat16, row_major> a;
    nvcuda::wmma::load_matrix_sync(a, reinterpret_cast<const __nv_bfloat16*>(rows), stride);
    KVLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      fragment<nvcuda::wmma::matrix_b, 16, 16, 16, __nv_bfloat16, col_major> b;
      nvcuda::wmma::load_matrix_sync(
          b, reinterpret_cast<const __nv_bfloat16*>(keys + i * 16 * stride), stride);
      nvcuda::wmma::mma_sync(sums[i], a, b, sums[i]);
    }
  }
  KVLAB_DEVICE void store(float* out, int stride) {
    KVLAB_UNROLL
    for (int i = 0; i < 4; ++i) {
      nvcuda::wmma::store_matrix_sync(out + i * 16, sums[i], stride, nvcuda::wmma::mem_row_major);
    }
  }
};

}  // namespace kvlab
