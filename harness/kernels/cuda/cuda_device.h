// Whether a GPU can run our kernels, and CUDA's errors as statuses.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>
#include <string_view>

namespace kvlab {

// Why no kernel of ours can run here (no driver, no device, one older than sm_80); nothing: it can.
std::optional<std::string> cuda_unavailable_reason();

// OK for 0; else internal, with what was queued and CUDA's own words. `error` is a cudaError_t.
absl::Status cuda_status(int error, std::string_view what);

}  // namespace kvlab
