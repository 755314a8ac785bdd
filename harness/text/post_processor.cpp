#include "harness/text/post_processor.h"

#include "harness/text/component_json.h"

namespace kvlab {
namespace {

constexpr std::string_view kKnown = "TemplateProcessing, ByteLevel, Sequence";

absl::StatusOr<std::vector<int32_t>> special_ids(const Json& part, const std::string& name,
                                                 std::string_view where) {
  KVLAB_ASSIGN_OR_RETURN(const Json tokens, json_get<Json>(part, "special_tokens", where));
  if (!tokens.is_object() || !tokens.contains(name)) {
    return invalid_argument("{}: the template's {} is not in special_tokens", where, name);
  }
  KVLAB_ASSIGN_OR_RETURN(const Json ids, json_get<Json>(tokens.at(name), "ids", where));
  std::vector<int32_t> out;
  for (const Json& id : ids.is_array() ? ids : Json::array({nullptr})) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() > INT32_MAX) {
      return invalid_argument("{}: special_tokens.{}.ids should be a list of ids, but is {}", where,
                              name, dump_json(ids));
    }
    out.push_back(id.get<int32_t>());
  }
  return out;
}

absl::Status wrap_in_template(const Json& part, std::string_view where, PostProcessor& made) {
  KVLAB_ASSIGN_OR_RETURN(const Json single, json_get<Json>(part, "single", where));
  if (!single.is_array()) {
    return invalid_argument("{}.single should be a list", where);
  }
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  bool seen = false;
  for (const Json& item : single) {
    if (item.is_object() && item.contains("Sequence")) {
      if (seen) {
        return unimplemented("{}.single puts the text in more than once", where);
      }
      seen = true;
    } else if (item.is_object() && item.contains("SpecialToken")) {
      KVLAB_ASSIGN_OR_RETURN(const std::string name,
                             json_get<std::string>(item.at("SpecialToken"), "id", where));
      KVLAB_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, special_ids(part, name, where));
      std::vector<int32_t>& side = seen ? after : before;
      side.insert(side.end(), ids.begin(), ids.end());
    } else {
      return invalid_argument("{}.single: each item should be a SpecialToken or a Sequence, not {}",
                              where, dump_json(item));
    }
  }
  if (!seen) {
    return invalid_argument("{}.single has no Sequence, so the text itself would be lost", where);
  }
  made.before.insert(made.before.begin(), before.begin(), before.end());
  made.after.insert(made.after.end(), after.begin(), after.end());
  return {};
}

}  // namespace

absl::StatusOr<PostProcessor> PostProcessor::from_json(const Json& post_processor,
                                                       std::string_view where) {
  PostProcessor made;
  if (post_processor.is_null()) {
    return made;
  }
  KVLAB_RETURN_IF_ERROR(for_each_part(
      post_processor, "processors", where,
      [&](const std::string& kind, const Json& part, std::string_view part_where) -> absl::Status {
        if (kind == "TemplateProcessing") {
          return wrap_in_template(part, part_where, made);
        }
        return kind == "ByteLevel" ? absl::Status() : unknown_kind(part_where, kind, kKnown);
      }));
  return made;
}

}  // namespace kvlab
