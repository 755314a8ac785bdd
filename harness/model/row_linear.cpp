#include "harness/model/row_linear.h"

#include <algorithm>
#include <utility>

#include "harness/base/check.h"
#include "harness/model/layer_ops.h"

namespace kvlab {
namespace {

// Rows of one call on devices whose matrix product picks its algorithm by shape.
constexpr int64_t kBlockRows = 16;

}  // namespace

RowLinear::RowLinear(const std::vector<at::Tensor>& weights,
                     const std::vector<at::Tensor>& biases) {
  KVLAB_CHECK(!weights.empty());
  at::Tensor weight = weights.size() == 1 ? weights.front() : at::cat(weights, 0);
  at::Tensor bias;
  if (!biases.empty() && biases.front().defined()) {
    bias = at::cat(biases, 0);
  }
  if (!use_cpu_kernels(weight)) {
    weight_ = std::move(weight);
    bias_ = std::move(bias);
    return;
  }
  packed_ = std::make_shared<const PackedLinear>(PackedLinear::pack(
      element_type(weight.scalar_type()), weight.const_data_ptr(), weight.size(0), weight.size(1),
      weight.stride(0), bias.defined() ? bias.const_data_ptr() : nullptr));
}

at::Tensor RowLinear::forward(const at::Tensor& x, bool to_float32) const {
  KVLAB_CHECK(x.dim() == 2 && x.is_contiguous());
  const int64_t rows = x.size(0);
  if (packed_ != nullptr) {
    const auto out_type = to_float32 ? at::kFloat : x.scalar_type();
    at::Tensor y = at::empty({rows, packed_->out_features()}, x.options().dtype(out_type));
    packed_->forward(x.const_data_ptr(), rows, x.stride(0), y.data_ptr(), y.stride(0),
                     element_type(out_type));
    return y;
  }
  std::vector<at::Tensor> blocks;
  for (int64_t first = 0; first < rows; first += kBlockRows) {
    const int64_t count = std::min(kBlockRows, rows - first);
    at::Tensor block = x.narrow(0, first, count);
    if (count < kBlockRows) {
      block = at::constant_pad_nd(block, {0, 0, 0, kBlockRows - count});
    }
    blocks.push_back(apply_linear(block, weight_, bias_).narrow(0, 0, count));
  }
  const at::Tensor y = at::cat(blocks, 0);
  return to_float32 ? y.to(at::kFloat) : y;
}

}  // namespace kvlab
