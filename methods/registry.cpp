#include "methods/registry.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "methods/method_definition.h"

namespace kvlab {
namespace {

constexpr std::string_view kVariant = "variant";
constexpr std::string_view kPaper = "paper";

std::string names_of(const std::vector<MethodParameter>& parameters) {
  std::vector<std::string> names;
  for (const MethodParameter& parameter : parameters) {
    names.push_back(parameter.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

const MethodParameter* find_parameter(const MethodInfo& info, std::string_view name) {
  const auto found = std::find_if(info.parameters.begin(), info.parameters.end(),
                                  [&](const auto& parameter) { return parameter.name == name; });
  return found == info.parameters.end() ? nullptr : &*found;
}

absl::Status check_limits(const std::string& where, const MethodParameter& parameter,
                          double value) {
  if (parameter.minimum && value < *parameter.minimum) {
    return invalid_argument("{} is {}, must be at least {}", where, value, *parameter.minimum);
  }
  if (parameter.maximum && value > *parameter.maximum) {
    return invalid_argument("{} is {}, must be at most {}", where, value, *parameter.maximum);
  }
  return absl::OkStatus();
}

// The default's type is the parameter's type; a whole number is also a real one.
absl::StatusOr<Json> checked_value(const MethodInfo& info, const MethodParameter& parameter,
                                   const Json& value) {
  const std::string where = fmt::format("{}: parameter \"{}\"", info.name, parameter.name);
  const Json& model = parameter.default_value;
  const auto wrong = [&](std::string_view expected) {
    return invalid_argument("{} is {}, expected {}", where, dump_json(value), expected);
  };
  if (model.is_boolean()) {
    return value.is_boolean() ? absl::StatusOr<Json>(value) : wrong("true or false");
  }
  if (model.is_number_integer()) {
    if (!value.is_number_integer()) {
      return wrong("a whole number");
    }
    KVLAB_RETURN_IF_ERROR(check_limits(where, parameter, value.get<double>()));
    constexpr double kLargest = std::numeric_limits<int32_t>::max();
    if (std::abs(value.get<double>()) > kLargest) {
      return wrong(fmt::format("a whole number of at most {}", kLargest));
    }
    return value;
  }
  if (model.is_number()) {
    if (!value.is_number()) {
      return wrong("a number");
    }
    KVLAB_RETURN_IF_ERROR(check_limits(where, parameter, value.get<double>()));
    return Json(value.get<double>());
  }
  if (model.is_object()) {
    return value.is_object() ? absl::StatusOr<Json>(value) : wrong("an object");
  }
  if (!value.is_string()) {
    return wrong(parameter.choices.empty()
                     ? std::string("a string")
                     : fmt::format("one of {}", fmt::join(parameter.choices, ", ")));
  }
  const auto text = value.get<std::string>();
  if (!parameter.choices.empty() && std::find(parameter.choices.begin(), parameter.choices.end(),
                                              text) == parameter.choices.end()) {
    return wrong(fmt::format("one of {}", fmt::join(parameter.choices, ", ")));
  }
  return value;
}

// The definitions with the parameter `variant` put in front where a method has variants.
std::vector<MethodInfo> infos_with_variants() {
  std::vector<MethodInfo> infos;
  for (const MethodDefinition& definition : method_definitions()) {
    MethodInfo info = definition.info;
    if (!info.variants.empty()) {
      MethodParameter variant{.name = std::string(kVariant),
                              .meaning = "whose reading of the method gives the defaults",
                              .default_value = std::string(kPaper),
                              .choices = {std::string(kPaper)},
                              .minimum = std::nullopt,
                              .maximum = std::nullopt};
      for (const MethodVariant& choice : info.variants) {
        variant.choices.push_back(choice.name);
      }
      info.parameters.insert(info.parameters.begin(), variant);
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace

const std::vector<MethodInfo>& list_methods() {
  static const std::vector<MethodInfo>* const infos =
      new std::vector<MethodInfo>(infos_with_variants());
  return *infos;
}

absl::StatusOr<Json> resolve_params(const MethodInfo& info, const Json& params) {
  if (!params.is_null() && !params.is_object()) {
    return invalid_argument("{}: parameters are {}, expected an object", info.name,
                            params.type_name());
  }
  Json resolved = Json::object();
  for (const MethodParameter& parameter : info.parameters) {
    resolved[parameter.name] = parameter.default_value;
  }
  if (params.is_null()) {
    return resolved;
  }
  if (const auto named = params.find(kVariant);
      named != params.end() && find_parameter(info, kVariant) != nullptr) {
    KVLAB_ASSIGN_OR_RETURN(const Json name,
                           checked_value(info, *find_parameter(info, kVariant), *named));
    for (const MethodVariant& variant : info.variants) {
      if (variant.name == name.get<std::string>()) {
        resolved.update(variant.overrides);
      }
    }
  }
  for (const auto& [key, value] : params.items()) {
    const MethodParameter* parameter = find_parameter(info, key);
    if (parameter == nullptr) {
      return invalid_argument("{}: no parameter \"{}\"; it has: {}", info.name, key,
                              names_of(info.parameters));
    }
    KVLAB_ASSIGN_OR_RETURN(resolved[key], checked_value(info, *parameter, value));
  }
  return resolved;
}

absl::StatusOr<const MethodInfo*> find_method(std::string_view name) {
  std::vector<std::string> names;
  for (const MethodInfo& info : list_methods()) {
    if (info.name == name) {
      return &info;
    }
    names.push_back(info.name);
  }
  return not_found("no method \"{}\"; there are: {}", name, fmt::join(names, ", "));
}

absl::StatusOr<std::unique_ptr<EvictionPolicy>> make_policy(std::string_view name,
                                                            const Json& params) {
  KVLAB_ASSIGN_OR_RETURN(const MethodInfo* info, find_method(name));
  KVLAB_ASSIGN_OR_RETURN(const Json resolved, resolve_params(*info, params));
  const auto index = static_cast<size_t>(info - list_methods().data());
  return method_definitions()[index].make(resolved);
}

}  // namespace kvlab
