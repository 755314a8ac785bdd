#include "harness/model/load_options.h"

#include "harness/base/status.h"

namespace kvlab {

absl::StatusOr<LoadOptions> parse_load_options(std::string_view dtype, std::string_view device) {
  LoadOptions options;
  if (dtype == "float32") {
    options.dtype = at::kFloat;
  } else if (dtype == "bfloat16") {
    options.dtype = at::kBFloat16;
  } else {
    return invalid_argument("dtype \"{}\": choose float32 or bfloat16", dtype);
  }
  if (device == "cuda") {
    options.device = at::kCUDA;
  } else if (device != "cpu") {
    return invalid_argument("device \"{}\": choose cpu or cuda", device);
  }
  return options;
}

}  // namespace kvlab
