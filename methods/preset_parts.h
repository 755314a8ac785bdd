// Small helpers for writing a method's definition.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "methods/attention_mass/attention_mass.h"
#include "methods/method_definition.h"
#include "methods/scored_policy.h"

namespace kvlab {

MethodParameter number_parameter(std::string name, std::string meaning, Json value,
                                 std::optional<double> minimum,
                                 std::optional<double> maximum = std::nullopt);
MethodParameter choice_parameter(std::string name, std::string meaning, std::string value,
                                 std::vector<std::string> choices);
MethodParameter text_parameter(std::string name, std::string meaning, std::string value);
MethodParameter flag_parameter(std::string name, std::string meaning, bool value);

// The parameter row_reduction (sum, mean, max), and its reading.
MethodParameter row_reduction_parameter(std::string value);
RowReduction read_row_reduction(const Json& params);

// `own` in front of the parameters that all scored methods share.
std::vector<MethodParameter> with_selection_parameters(std::vector<MethodParameter> own,
                                                       const SelectionDefaults& defaults);

// A policy of `scorer` with the shared parameters as given.
absl::StatusOr<std::unique_ptr<EvictionPolicy>> scored_policy(
    std::string name, const Json& params, std::unique_ptr<Scorer> scorer,
    const std::string& window_name = "window");

}  // namespace kvlab
