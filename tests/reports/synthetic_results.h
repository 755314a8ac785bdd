// Results of a sweep that never ran: for measuring reports, and for looking at them without a
// model.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace kvlab {

struct SyntheticSizes {
  int64_t samples = 20;  // for each task and length
  int64_t tasks = 4, methods = 4, budgets = 3, lengths = 2;
  bool bulky = true;       // prompts, and kept positions of every task's first sample
  std::string extra_name;  // one more method of this name, at every budget
};

// Writes through the writer that sweeps use. Rows: samples * tasks * lengths * (1 + methods *
// budgets). The same bytes of data for the same sizes.
absl::Status write_synthetic_results(const std::filesystem::path& path,
                                     const SyntheticSizes& sizes);

}  // namespace kvlab
