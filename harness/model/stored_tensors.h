// Between ATen's tensors and those of a safetensors file.
#pragma once

#include <ATen/ATen.h>
#include <absl/status/statusor.h>

#include <string>

#include "harness/model/safetensors.h"

namespace kvlab {

// Error: not a floating-point type that a model can be stored in.
absl::StatusOr<at::ScalarType> scalar_type(StoredType type);

// A contiguous floating-point CPU tensor as write_safetensors() takes it; valid as long as the
// tensor.
SafetensorsTensor stored_view(std::string name, const at::Tensor& tensor);

}  // namespace kvlab
