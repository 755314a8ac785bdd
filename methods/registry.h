// Every method by name: the presets of the literature as data, and the parts they combine.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "methods/eviction_policy.h"

namespace kvlab {

struct MethodParameter {
  std::string name;
  std::string meaning;
  Json default_value;
  std::vector<std::string> choices;  // for enumerations
};

struct MethodInfo {
  std::string name;     // "snapkv"
  std::string summary;  // one line
  std::string source;   // paper, equation
  std::string cost;     // what it does beyond prefill, in words
  std::vector<MethodParameter> parameters;
  bool needs_budget = true;  // false: full
};

const std::vector<MethodInfo>& list_methods();

// `params` overrides defaults; unknown names, unknown parameters and bad values are errors that
// list what is valid.
absl::StatusOr<std::unique_ptr<EvictionPolicy>> make_policy(std::string_view name,
                                                            const Json& params);

}  // namespace kvlab
