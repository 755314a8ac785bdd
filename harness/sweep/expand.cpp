#include "harness/sweep/expand.h"

#include <cmath>
#include <cstdlib>
#include <string>

#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr int64_t kMaxRangeElements = 10'000;

absl::StatusOr<std::string> expand_string(const std::string& text, std::string_view origin) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "${") != 0) {
      out += text[i++];
      continue;
    }
    const size_t close = text.find('}', i);
    if (close == std::string::npos) {
      return invalid_argument("{}: \"{}\" opens ${{ without closing it", origin, text);
    }
    const std::string inside = text.substr(i + 2, close - i - 2);
    const size_t separator = inside.find(":-");
    const std::string name = inside.substr(0, separator);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') {
      out += value;
    } else if (separator != std::string::npos) {
      out += inside.substr(separator + 2);
    } else {
      return invalid_argument("{}: the environment variable {} in \"{}\" is not set", origin, name,
                              text);
    }
    i = close + 1;
  }
  return out;
}

bool is_range(const Json& value) {
  return value.is_object() && value.contains("from") && value.contains("to") &&
         (value.contains("times") || value.contains("step"));
}

absl::StatusOr<Json> expand_range(const Json& range, std::string_view origin) {
  for (const auto& [key, number] : range.items()) {
    if (!number.is_number()) {
      return invalid_argument("{}: \"{}\" of a range is not a number", origin, key);
    }
  }
  const double from = range.at("from");
  const double to = range.at("to");
  const bool times = range.contains("times");
  const double change = times ? range.at("times") : range.at("step");
  if (from > to || (times ? change <= 1 || from <= 0 : change <= 0)) {
    return invalid_argument(
        "{}: a range goes up: from <= to, with \"times\" above 1 (and from above 0) or \"step\" "
        "above 0",
        origin);
  }
  Json out = Json::array();
  for (int64_t i = 0; i < kMaxRangeElements; ++i) {
    const double n = static_cast<double>(i);
    const double value = times ? from * std::pow(change, n) : from + change * n;
    if (value > to * (1 + 1e-12)) {
      return out;
    }
    const double rounded = std::round(value);
    if (std::abs(value - rounded) < 1e-9 * std::max(1.0, std::abs(value))) {
      out.push_back(static_cast<int64_t>(rounded));
    } else {
      out.push_back(value);
    }
  }
  return invalid_argument("{}: the range has more than {} elements", origin, kMaxRangeElements);
}

absl::StatusOr<const Json*> find_group(const std::string& name, const Json& groups,
                                       std::string_view origin) {
  if (groups.is_object() && groups.contains(name)) {
    return &groups.at(name);
  }
  std::string known;
  if (groups.is_object()) {
    for (const auto& [key, unused] : groups.items()) {
      known += (known.empty() ? "" : ", ") + key;
    }
  }
  return invalid_argument("{}: no group \"{}\"; groups in this file: {}", origin, name,
                          known.empty() ? "none" : known);
}

bool is_group_name(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with("@");
}

}  // namespace

absl::StatusOr<Json> expand_variables(const Json& value, std::string_view origin) {
  if (value.is_string()) {
    KVLAB_ASSIGN_OR_RETURN(std::string text, expand_string(value.get<std::string>(), origin));
    return Json(std::move(text));
  }
  if (!value.is_structured()) {
    return value;
  }
  Json out = value;
  for (const auto& [key, child] : value.items()) {
    const std::string place = fmt::format("{}{}{}", origin, value.is_array() ? " #" : ", ", key);
    KVLAB_ASSIGN_OR_RETURN(Json expanded, expand_variables(child, place));
    if (value.is_array()) {
      out[std::stoul(key)] = std::move(expanded);
    } else {
      out[key] = std::move(expanded);
    }
  }
  return out;
}

absl::StatusOr<Json> expand_lists(const Json& value, const Json& groups, std::string_view origin) {
  if (is_group_name(value)) {
    KVLAB_ASSIGN_OR_RETURN(const Json* group,
                           find_group(value.get<std::string>().substr(1), groups, origin));
    return expand_lists(*group, Json::object(), origin);
  }
  if (is_range(value)) {
    return expand_range(value, origin);
  }
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& element : value) {
      KVLAB_ASSIGN_OR_RETURN(Json expanded, expand_lists(element, groups, origin));
      if ((is_group_name(element) || is_range(element)) && expanded.is_array()) {
        out.insert(out.end(), expanded.begin(), expanded.end());
      } else {
        out.push_back(std::move(expanded));
      }
    }
    return out;
  }
  if (value.is_object()) {
    Json out = Json::object();
    for (const auto& [key, child] : value.items()) {
      KVLAB_ASSIGN_OR_RETURN(out[key],
                             expand_lists(child, groups, fmt::format("{}, {}", origin, key)));
    }
    return out;
  }
  return value;
}

std::vector<Json> cross_product(const Json& object) {
  std::vector<Json> out = {Json::object()};
  for (const auto& [key, value] : object.items()) {
    const Json choices = value.is_array() ? value : Json::array({value});
    std::vector<Json> next;
    for (const Json& partial : out) {
      for (const Json& choice : choices) {
        next.push_back(partial);
        next.back()[key] = choice;
      }
    }
    out = std::move(next);
  }
  return out;
}

}  // namespace kvlab
