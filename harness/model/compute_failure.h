// What an exception of LibTorch's becomes where the runtime ends: mostly memory that ran out.
#pragma once

#include <absl/status/status.h>
#include <fmt/format.h>

#include <exception>
#include <string_view>

#include "harness/base/status.h"

namespace kvlab {

// what: "prefill of 4096 tokens".
inline absl::Status compute_failure(std::string_view what, const std::exception& error) {
  return absl::ResourceExhaustedError(to_absl(fmt::format("{} failed: {}", what, error.what())));
}

}  // namespace kvlab
