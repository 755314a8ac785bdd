// A bench file, read and checked: what `kvlab bench` measures.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/model/model_config.h"

namespace kvlab {

struct BenchMethod {
  std::string name;
  std::string label;  // empty: the policy's
  Json params;
};

enum class BenchForm { kByLayers, kShared };
std::string_view form_name(BenchForm form);  // "by_layers", "shared"

struct BenchConfig {
  std::filesystem::path path;
  std::filesystem::path model_dir;
  ModelConfig model;  // positions raised
  bool random_weights = false;
  std::string dtype = "bfloat16";
  std::string device = "cpu";
  int threads = 0;  // 0: all
  int64_t prefill_chunk = 2048;
  std::vector<BenchMethod> methods;
  std::vector<int64_t> budgets = {128};
  std::vector<int64_t> lengths;
  std::vector<int64_t> arms = {1};
  std::vector<BenchForm> forms = {BenchForm::kByLayers};
  int64_t new_tokens = 32;
  int64_t repetitions = 5;
  int64_t warmup = 1;
  uint64_t seed = 1;  // of the prompt's tokens, the order and random weights
  Json source;        // as written
};

// What the command line replaces; empty: as the file says.
struct BenchOverrides {
  std::vector<int64_t> lengths;
  std::vector<int64_t> budgets;
  std::vector<int64_t> arms;
  std::vector<std::string> methods;  // names or labels: only these of the file's
  int64_t repetitions = 0;
  int64_t threads = -1;  // -1: as the file says
};

// Errors name the file and the place in it: unknown keys, lengths beyond the model's positions, a
// method named on the command line that the file does not have.
absl::StatusOr<BenchConfig> load_bench_config(const std::filesystem::path& path,
                                              const BenchOverrides& overrides);

}  // namespace kvlab
