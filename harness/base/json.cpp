#include "harness/base/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "harness/base/files.h"

namespace kvlab {
namespace {

constexpr int kMaxDepth = 256;  // copying or printing a deeper value could overflow the stack

bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) {
        return true;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<Json> parse_json(std::string_view text, std::string_view origin,
                                const JsonOptions& options) {
  if (is_too_deep(text)) {
    return invalid_argument("{}: not usable JSON: nested deeper than {} levels", origin, kMaxDepth);
  }
  if (const size_t at = text.find('\0'); at != std::string_view::npos) {
    // The parser would take it for the end.
    return invalid_argument("{}: not valid JSON: a zero byte at {}", origin, at);
  }
  std::vector<std::set<std::string>> keys;  // one set per open object
  std::string duplicate;
  const auto watch_keys = [&](int /*depth*/, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      if (!keys.back().insert(key).second && duplicate.empty()) {
        duplicate = key;
      }
    }
    return true;
  };
  try {
    const Json::parser_callback_t callback =
        options.refuse_duplicate_keys ? Json::parser_callback_t(watch_keys) : nullptr;
    Json value = Json::parse(text, callback, /*allow_exceptions=*/true, options.allow_comments);
    if (!duplicate.empty()) {
      return invalid_argument("{}: the key \"{}\" stands twice in one object", origin, duplicate);
    }
    return value;
  } catch (const Json::exception& error) {
    return invalid_argument("{}: not valid JSON: {}", origin, error.what());
  }
}

absl::StatusOr<Json> read_json_file(const std::filesystem::path& path, const JsonOptions& options) {
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return parse_json(text, path.string(), options);
}

absl::StatusOr<std::vector<JsonLine>> parse_json_lines(std::string_view text,
                                                       std::string_view origin) {
  std::vector<JsonLine> lines;
  size_t line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    ++line_number;
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    KVLAB_ASSIGN_OR_RETURN(Json value,
                           parse_json(line, fmt::format("{}, line {}", origin, line_number),
                                      {.refuse_duplicate_keys = false}));
    lines.push_back({line_number, std::move(value)});
  }
  return lines;
}

absl::StatusOr<std::vector<Json>> read_json_lines(const std::filesystem::path& path) {
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  KVLAB_ASSIGN_OR_RETURN(std::vector<JsonLine> lines, parse_json_lines(text, path.string()));
  std::vector<Json> values;
  values.reserve(lines.size());
  for (JsonLine& line : lines) {
    values.push_back(std::move(line.value));
  }
  return values;
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

namespace json_internal {

absl::Status missing(std::string_view origin, std::string_view key) {
  return invalid_argument("{}: the key \"{}\" is missing", origin, key);
}

absl::Status mistyped(std::string_view origin, std::string_view key, const Json& value,
                      std::string_view expected) {
  return invalid_argument("{}: \"{}\" is {}, expected {}", origin, key, value.type_name(),
                          expected);
}

}  // namespace json_internal
}  // namespace kvlab
