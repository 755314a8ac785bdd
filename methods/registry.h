// Every method by name: the presets of the literature as data, and the parts they combine.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
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
  std::optional<double> minimum;     // for numbers, inclusive
  std::optional<double> maximum;     // for numbers, inclusive
};

// Other defaults under a name: how some implementation reads the method. Chosen by the parameter
// `variant`; parameters given beside it still win.
struct MethodVariant {
  std::string name;  // "kvpress"
  std::string meaning;
  Json overrides;  // parameter -> default
};

struct MethodInfo {
  std::string name;     // "snapkv"
  std::string summary;  // one line
  std::string source;   // paper, equation
  std::string cost;     // what it does beyond prefill, in words
  std::vector<MethodParameter> parameters;
  std::vector<MethodVariant> variants;  // besides the parameters' own defaults, "paper"
  bool needs_budget = true;             // false: full
};

const std::vector<MethodInfo>& list_methods();

// An unknown name is an error that lists the known ones.
absl::StatusOr<const MethodInfo*> find_method(std::string_view name);

// `params` overrides defaults; unknown names, unknown parameters and bad values are errors that
// list what is valid. Null counts as {}.
absl::StatusOr<std::unique_ptr<EvictionPolicy>> make_policy(std::string_view name,
                                                            const Json& params);

}  // namespace kvlab
