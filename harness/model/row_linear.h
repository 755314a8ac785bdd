// A linear map for a few rows whose results do not depend, bit for bit, on the other rows: packed
// weights on the CPU, blocks of one fixed shape elsewhere.
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "harness/kernels/packed_linear.h"

namespace kvlab {

class RowLinear final {
 public:
  RowLinear() = default;

  // Stacks weights [out_i, in_features] one below the other; each bias may be undefined, but then
  // all are.
  RowLinear(const std::vector<at::Tensor>& weights, const std::vector<at::Tensor>& biases);

  // x [rows, in_features] contiguous -> [rows, out_features] of x's type, or float32.
  at::Tensor forward(const at::Tensor& x, bool to_float32 = false) const;

  const PackedLinear* packed() const { return packed_.get(); }  // null away from the CPU

 private:
  std::shared_ptr<const PackedLinear> packed_;  // CPU
  at::Tensor weight_;                           // elsewhere
  at::Tensor bias_;
};

}  // namespace kvlab
