#include "harness/model/stored_tensors.h"

#include <utility>

#include "harness/base/status.h"

namespace kvlab {
namespace {

StoredType stored_type(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return StoredType::kFloat64;
    case at::kHalf:
      return StoredType::kFloat16;
    case at::kBFloat16:
      return StoredType::kBFloat16;
    default:
      return StoredType::kFloat32;
  }
}

}  // namespace

absl::StatusOr<at::ScalarType> scalar_type(StoredType type) {
  switch (type) {
    case StoredType::kFloat64:
      return at::kDouble;
    case StoredType::kFloat32:
      return at::kFloat;
    case StoredType::kFloat16:
      return at::kHalf;
    case StoredType::kBFloat16:
      return at::kBFloat16;
    default:
      return unimplemented("is stored as {}; weights must be F32, F16, BF16 or F64",
                           stored_type_name(type));
  }
}

SafetensorsTensor stored_view(std::string name, const at::Tensor& tensor) {
  return {.name = std::move(name),
          .type = stored_type(tensor.scalar_type()),
          .shape = tensor.sizes().vec(),
          .data = {static_cast<const std::byte*>(tensor.const_data_ptr()),
                   static_cast<size_t>(tensor.nbytes())}};
}

}  // namespace kvlab
