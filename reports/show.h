// Everything stored about one sample: its prompt, and what every arm did with it.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "results/sqlite.h"

namespace kvlab {

struct ShowOptions {
  std::string sample;       // its key
  bool prompt = false;      // the rendered prompt in full instead of its two ends
  bool positions = false;   // kept positions as ranges instead of a map
  std::string only_method;  // name or label; "": all
};

// Errors: no such sample (names that resemble it are listed), damaged rows.
absl::StatusOr<std::string> show_sample(const Database& db, const ShowOptions& options);

}  // namespace kvlab
