// How a model is loaded, from the words that configs and flags use.
#pragma once

#include <absl/status/statusor.h>

#include <string_view>

#include "harness/model/causal_lm.h"

namespace kvlab {

// `dtype`: "float32" or "bfloat16"; `device`: "cpu" or "cuda". Anything else is an error that lists
// the choices.
absl::StatusOr<LoadOptions> parse_load_options(std::string_view dtype, std::string_view device);

}  // namespace kvlab
