// What a method's file hands to the registry, and the reading of its parameters.
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string_view>

#include "harness/base/json.h"
#include "methods/eviction_policy.h"
#include "methods/registry.h"

namespace kvlab {

struct MethodDefinition {
  MethodInfo info;
  // `params` are resolved: every parameter is there, with the right type, within its limits.
  std::function<absl::StatusOr<std::unique_ptr<EvictionPolicy>>(const Json& params)> make;
};

// Every method, in the order in which tables list them. presets.h: one line a method.
const std::vector<MethodDefinition>& method_definitions();

// Defaults, then the variant's, then `params`. Errors name the method and the parameter and say
// what is valid.
absl::StatusOr<Json> resolve_params(const MethodInfo& info, const Json& params);

}  // namespace kvlab
