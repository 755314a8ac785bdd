#include "harness/text/component_json.h"

#include "harness/text/utf8.h"

namespace kvlab {
namespace {

constexpr int kMaxDepth = 16;

absl::Status visit_parts(
    const Json& component, const std::string& list_key, std::string_view where, int depth,
    const std::function<absl::Status(const std::string&, const Json&, std::string_view)>& visit) {
  KVLAB_ASSIGN_OR_RETURN(const std::string kind, json_get<std::string>(component, "type", where));
  if (kind != "Sequence") {
    return visit(kind, component, where);
  }
  if (depth >= kMaxDepth) {
    return invalid_argument("{}: more than {} sequences inside each other", where, kMaxDepth);
  }
  const auto parts = component.find(list_key);
  if (parts == component.end() || !parts->is_array()) {
    return invalid_argument("{}.{} should be a list", where, list_key);
  }
  for (size_t i = 0; i < parts->size(); ++i) {
    KVLAB_RETURN_IF_ERROR(visit_parts(
        (*parts)[i], list_key, fmt::format("{}.{}[{}]", where, list_key, i), depth + 1, visit));
  }
  return {};
}

}  // namespace

absl::Status for_each_part(
    const Json& component, const std::string& list_key, std::string_view where,
    const std::function<absl::Status(const std::string&, const Json&, std::string_view)>& visit) {
  return visit_parts(component, list_key, where, 0, visit);
}

absl::Status unknown_kind(std::string_view where, std::string_view kind, std::string_view known) {
  return unimplemented("{}: the kind {} is not supported (supported: {})", where, kind, known);
}

absl::StatusOr<Pattern> read_pattern(const Json& part, const std::string& key,
                                     std::string_view where) {
  KVLAB_ASSIGN_OR_RETURN(const Json pattern, json_get<Json>(part, key, where));
  if (pattern.is_object() && pattern.size() == 1) {
    if (const auto text = pattern.find("String"); text != pattern.end() && text->is_string()) {
      if (text->get_ref<const std::string&>().empty()) {
        return invalid_argument("{}.{} is empty", where, key);
      }
      return Pattern(text->get<std::string>());
    }
    if (const auto text = pattern.find("Regex"); text != pattern.end() && text->is_string()) {
      auto regex = Regex::compile(text->get_ref<const std::string&>());
      if (!regex.ok()) {
        return with_context(regex.status(), fmt::format("{}.{}", where, key));
      }
      return Pattern(*std::move(regex));
    }
  }
  return invalid_argument("{}.{} should be {{\"String\": ...}} or {{\"Regex\": ...}}, but is {}",
                          where, key, dump_json(pattern));
}

absl::StatusOr<std::string> read_character(const Json& part, const std::string& key,
                                           std::string_view where) {
  KVLAB_ASSIGN_OR_RETURN(std::string text, json_get<std::string>(part, key, where));
  if (to_code_points(text).size() != 1) {
    return invalid_argument("{}.{} should be one character, but is {}", where, key,
                            dump_json(Json(text)));
  }
  return text;
}

absl::StatusOr<Metaspace> read_metaspace(const Json& part, std::string_view where) {
  Metaspace metaspace;
  KVLAB_ASSIGN_OR_RETURN(metaspace.replacement, read_character(part, "replacement", where));
  // Files from before the prepend_scheme say add_prefix_space.
  KVLAB_ASSIGN_OR_RETURN(const bool add_prefix,
                         json_get_or<bool>(part, "add_prefix_space", true, where));
  KVLAB_ASSIGN_OR_RETURN(
      const std::string scheme,
      json_get_or<std::string>(part, "prepend_scheme", add_prefix ? "always" : "never", where));
  if (scheme == "always") {
    metaspace.prepend = Metaspace::Prepend::kAlways;
  } else if (scheme == "first") {
    metaspace.prepend = Metaspace::Prepend::kFirst;
  } else if (scheme == "never") {
    metaspace.prepend = Metaspace::Prepend::kNever;
  } else {
    return invalid_argument("{}.prepend_scheme should be always, first or never, but is {}", where,
                            scheme);
  }
  KVLAB_ASSIGN_OR_RETURN(metaspace.split, json_get_or<bool>(part, "split", true, where));
  return metaspace;
}

}  // namespace kvlab
