#include "methods/preset_parts.h"

#include "harness/base/status.h"

namespace kvlab {

MethodParameter number_parameter(std::string name, std::string meaning, Json value,
                                 std::optional<double> minimum, std::optional<double> maximum) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .default_value = std::move(value),
          .choices = {},
          .minimum = minimum,
          .maximum = maximum};
}

MethodParameter choice_parameter(std::string name, std::string meaning, std::string value,
                                 std::vector<std::string> choices) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .default_value = std::move(value),
          .choices = std::move(choices),
          .minimum = std::nullopt,
          .maximum = std::nullopt};
}

MethodParameter text_parameter(std::string name, std::string meaning, std::string value) {
  return choice_parameter(std::move(name), std::move(meaning), std::move(value), {});
}

MethodParameter flag_parameter(std::string name, std::string meaning, bool value) {
  return {.name = std::move(name),
          .meaning = std::move(meaning),
          .default_value = value,
          .choices = {},
          .minimum = std::nullopt,
          .maximum = std::nullopt};
}

MethodParameter row_reduction_parameter(std::string value) {
  return choice_parameter("row_reduction", "over the query rows", std::move(value),
                          {"mean", "sum", "max"});
}

RowReduction read_row_reduction(const Json& params) {
  const auto& text = params.at("row_reduction").get_ref<const std::string&>();
  return text == "mean"  ? RowReduction::kMean
         : text == "sum" ? RowReduction::kSum
                         : RowReduction::kMax;
}

std::vector<MethodParameter> with_selection_parameters(std::vector<MethodParameter> own,
                                                       const SelectionDefaults& defaults) {
  for (MethodParameter& parameter : selection_parameters(defaults)) {
    own.push_back(std::move(parameter));
  }
  return own;
}

absl::StatusOr<std::unique_ptr<EvictionPolicy>> scored_policy(std::string name, const Json& params,
                                                              std::unique_ptr<Scorer> scorer,
                                                              const std::string& window_name) {
  absl::StatusOr<SelectionOptions> options = read_selection_options(params, window_name);
  if (!options.ok()) {
    return with_context(options.status(), name);
  }
  return make_scored_policy(std::move(name), params, std::move(scorer), *options);
}

}  // namespace kvlab
