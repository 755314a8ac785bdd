// The settings of RULER and of the needle grid as a sweep file gives them.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/ruler/source_loader.h"
#include "harness/base/json.h"

namespace kvlab {

// What all prompts of the two benchmarks have in common.
struct PromptSettings {
  std::vector<int64_t> lengths = {4096};
  int64_t samples = 10;  // per task and length
  uint64_t seed = 42;
  bool count_template =
      false;                  // "template": "model": lengths are counted with the model's template
  bool chat_template = true;  // prompts run inside the model's user turn
  RulerSourcePaths paths;
};

struct RulerOptions {
  PromptSettings settings;
  std::vector<std::string> tasks;  // resolved: never empty
  std::filesystem::path file;      // a JSON-lines file made elsewhere
  std::filesystem::path folder;    // a folder of such files
  bool samples_given = false;      // files run whole unless a number is given
  bool lengths_given = false;
};

// Errors name the key, what is wrong with it, and the valid choices.
absl::StatusOr<RulerOptions> parse_ruler_options(const Json& params);

struct NeedleGridOptions {
  PromptSettings settings;
  std::vector<int64_t> depths = {0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100};  // per cent
};
absl::StatusOr<NeedleGridOptions> parse_needle_grid_options(const Json& params);

}  // namespace kvlab
