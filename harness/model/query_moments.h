// Mean and covariance of queries seen chunk by chunk, without keeping them (ExpectedAttention).
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace kvlab {

class QueryMoments final {
 public:
  // queries [num_heads, rows, head_dim], any floating type.
  void add(const at::Tensor& queries);

  // [num_heads, head_dim] and [num_heads, head_dim, head_dim] float32; the covariance divides by
  // the number of queries. Undefined before the first query.
  at::Tensor mean() const { return mean_; }
  at::Tensor covariance() const;

 private:
  int64_t count_ = 0;
  at::Tensor mean_;
  at::Tensor scatter_;  // sum of (q - mean)(q - mean)^T
};

}  // namespace kvlab
