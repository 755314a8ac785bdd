// JSON as kvlab reads it: strict about duplicate keys, with errors that name the
// file, and typed access that names the path of a missing or mistyped key.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/status.h"

namespace kvlab {

using Json = nlohmann::json;

struct JsonOptions {
  bool allow_comments = false;
  bool refuse_duplicate_keys = true;
};

// `origin` (a file name, usually) starts every message.
absl::StatusOr<Json> parse_json(std::string_view text, std::string_view origin,
                                const JsonOptions& options = {});
absl::StatusOr<Json> read_json_file(const std::filesystem::path& path,
                                    const JsonOptions& options = {});

// One JSON value a line; empty lines are skipped. Errors name the line.
struct JsonLine {
  size_t number = 0;  // from 1
  Json value;
};
absl::StatusOr<std::vector<JsonLine>> parse_json_lines(std::string_view text,
                                                       std::string_view origin);
absl::StatusOr<std::vector<Json>> read_json_lines(const std::filesystem::path& path);

// Compact text with sorted keys; invalid UTF-8 becomes U+FFFD instead of an exception.
std::string dump_json(const Json& value, int indent = -1);

namespace json_internal {
absl::Status missing(std::string_view origin, std::string_view key);
absl::Status mistyped(std::string_view origin, std::string_view key, const Json& value,
                      std::string_view expected);
template <typename T>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_integral_v<T>) {
    return "an integer";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a number";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "a string";
  } else {
    return "another type";
  }
}
template <typename T>
bool has_type(const Json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    return value.is_number_integer();
  } else if constexpr (std::is_floating_point_v<T>) {
    return value.is_number();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.is_string();
  } else {
    return true;
  }
}
}  // namespace json_internal

// object[key] as T (bool, integer, floating point, std::string, Json).
template <typename T>
absl::StatusOr<T> json_get(const Json& object, const std::string& key, std::string_view origin) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end()) {
    return json_internal::missing(origin, key);
  }
  if (!json_internal::has_type<T>(*it)) {
    return json_internal::mistyped(origin, key, *it, json_internal::type_name<T>());
  }
  return it->template get<T>();
}

// The same with a default for an absent or null key; a mistyped one is still an error.
template <typename T>
absl::StatusOr<T> json_get_or(const Json& object, const std::string& key, T fallback,
                              std::string_view origin) {
  if (!object.is_object() || !object.contains(key) || object.at(key).is_null()) {
    return fallback;
  }
  return json_get<T>(object, key, origin);
}

}  // namespace kvlab
