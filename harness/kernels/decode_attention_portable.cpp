#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/kernels/decode_attention_kernels.h"

namespace kvlab {
namespace {

template <typename Element>
float dot(const Element* a, const Element* b, int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < n; ++d) {
    sum += to_float(a[d]) * to_float(b[d]);
  }
  return sum;
}

template <typename Element>
void attend_row(const DecodeChunk& chunk, int64_t row) {
  const Element* query = static_cast<const Element*>(chunk.queries) + row * chunk.head_dim;
  float* weights = chunk.weights + row * chunk.score_stride;
  int64_t len = 0;
  float largest = -std::numeric_limits<float>::infinity();
  for (const DecodeRun& run : chunk.runs) {
    const auto* keys = static_cast<const Element*>(run.keys);
    for (int64_t i = 0; i < run.len; ++i, ++len) {
      weights[len] = dot(query, keys + i * chunk.head_dim, chunk.head_dim) * chunk.scale;
      largest = std::max(largest, weights[len]);
    }
  }
  float sum = 0;
  for (int64_t i = 0; i < len; ++i) {
    weights[i] = std::exp(weights[i] - largest);
    sum += weights[i];
  }
  float* output = chunk.output + row * chunk.head_dim;
  std::fill(output, output + chunk.head_dim, 0.0F);
  for (const DecodeRun& run : chunk.runs) {
    const auto* value = static_cast<const Element*>(run.values);
    for (int64_t i = 0; i < run.len; ++i, value += chunk.head_dim) {
      const float weight = *weights++;
#pragma omp simd
      for (int64_t d = 0; d < chunk.head_dim; ++d) {
        output[d] += weight * to_float(value[d]);
      }
    }
  }
  chunk.largest[row] = largest;
  chunk.sum[row] = sum;
}

}  // namespace

void decode_chunk_portable(const DecodeChunk& chunk) {
  for (int64_t row = 0; row < chunk.group_size; ++row) {
    if (chunk.type == ElementType::kFloat32) {
      attend_row<float>(chunk, row);
    } else {
      attend_row<BFloat16>(chunk, row);
    }
  }
}

}  // namespace kvlab
