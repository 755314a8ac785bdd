// What the cost model says about models and devices that are not at hand, as tables.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/bench/cost_model.h"
#include "reports/table.h"

namespace kvlab {

// Published shapes: "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-1b",
// "smollm2-135m". Unknown names are an error that lists them.
absl::StatusOr<ModelConfig> known_shape(std::string_view name);

// The methods of the article's comparison with its settings: window 32, 32 learned rows of rank 8,
// 32 draft tokens. SpecKV's draft is Llama-3.2-1B's, for larger models of its vocabulary only.
struct PredictedMethod {
  std::string label;
  MethodCost cost;
  bool by_layers = false;
};
std::vector<PredictedMethod> compared_methods(const ModelConfig& model);

// One table of prefill, eviction (milliseconds, share of prefill) and decoding for each length. A
// model that one device cannot hold runs on so many that it can, work shared evenly and without
// communication; their number is a column.
Table prediction_table(const std::string& name, const ModelConfig& config, const Device& device,
                       const std::vector<int64_t>& lengths, int64_t budget);

}  // namespace kvlab
