// A sweep file, read, checked and expanded; nothing has been loaded or run yet.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/json.h"
#include "harness/sweep/budget_spec.h"

namespace kvlab {

struct BenchmarkSpec {
  std::string name;
  Json params;  // the benchmark's own keys, variables and ranges expanded
};

struct MethodSpec {
  std::string name;
  std::string label;                // as tables show it; empty: made from name and params
  Json params;                      // overrides of the method's defaults, one combination
  std::vector<BudgetSpec> budgets;  // this method's own, or the sweep's
  std::string place;                // "methods[2]", for messages
};

struct SweepConfig {
  std::string name;
  std::filesystem::path path;
  std::vector<std::filesystem::path> models;  // Hugging Face directories
  std::string dtype = "bfloat16";
  std::string device = "cpu";
  int threads = 0;  // 0: all cores
  int64_t prefill_chunk = 2048;
  std::vector<BenchmarkSpec> benchmarks;
  std::vector<MethodSpec> methods;
  std::vector<bool> question_aware = {true};
  std::vector<Json> exclude;
  bool store_prompts = true;
  bool store_selections = false;
  int64_t sanity_after_samples = 5;
  std::map<std::string, std::pair<double, double>> sanity_bands;  // task to [low, high]
  Json source;  // the file as written, for the run's row
};

// Reads and checks a sweep file. Errors name the file, the place in it and what would be valid.
absl::StatusOr<SweepConfig> load_sweep_config(const std::filesystem::path& path);

// A model given by directory, or by name below the cache's models folder.
absl::StatusOr<std::filesystem::path> find_model_dir(const std::string& name_or_path);

}  // namespace kvlab
