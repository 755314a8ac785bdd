// Rotary position embeddings: default, linear, llama3 and yarn scaling, computed in float32 as
// transformers does (modeling_rope_utils.py), since an angle at position 8,000 shows the rounding.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "harness/model/model_config.h"

namespace kvlab {

class RotaryEmbedding final {
 public:
  explicit RotaryEmbedding(const ModelConfig& config, at::Device device = at::kCPU);

  struct Tables {
    at::Tensor cos;  // [count, head_dim / 2] float32, yarn's attention factor included
    at::Tensor sin;
  };
  // For positions first .. first + count - 1. The tables grow as asked; not thread-safe.
  Tables tables(int64_t first, int64_t count);

  const at::Tensor& inverse_frequencies() const { return inverse_frequencies_; }  // [head_dim / 2]
  double attention_factor() const { return attention_factor_; }

 private:
  at::Device device_;
  at::Tensor inverse_frequencies_;  // float32
  double attention_factor_ = 1;
  Tables grown_;
};

}  // namespace kvlab
