#include "harness/sweep/schema_message.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace kvlab {
namespace {

using Schemas = std::vector<const Json*>;

constexpr size_t kShownCharacters = 80;

std::string shown(const Json& value) {
  std::string text = dump_json(value);
  if (text.size() > kShownCharacters) {
    return value.is_object() ? "this object" : value.is_array() ? "this list" : "this text";
  }
  return text;
}

// Each word after the first behind a comma, the last behind `last`.
std::string joined(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 < words.size() ? ", " : fmt::format(" {} ", last);
    text += words[i];
  }
  return text;
}

const Json& child(const Json& value, const std::string& part) {
  return value.is_array() ? value.at(std::stoul(part)) : value.at(part);
}

const Json& value_at(const Json& value, const JsonPlace& place) {
  const Json* at = &value;
  for (const std::string& part : place) {
    at = &child(*at, part);
  }
  return *at;
}

// "methods[0].params"
std::string place_text(const Json& value, const JsonPlace& place) {
  std::string text;
  const Json* at = &value;
  for (const std::string& part : place) {
    text += at->is_array() ? "[" + part + "]" : (text.empty() ? "" : ".") + part;
    at = &child(*at, part);
  }
  return text;
}

// What `schema` stands for: itself, or all that its reference or its alternatives do.
void add_alternatives(const Json& root, const Json& schema, Schemas& found) {
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const std::string pointer = reference->get<std::string>().substr(1);  // behind "#"
    add_alternatives(root, root.at(Json::json_pointer(pointer)), found);
    return;
  }
  if (schema.contains("type") || schema.contains("enum")) {
    found.push_back(&schema);
    return;
  }
  for (const char* keyword : {"oneOf", "anyOf"}) {
    if (const auto list = schema.find(keyword); list != schema.end()) {
      for (const Json& one : *list) {
        add_alternatives(root, one, found);
      }
    }
  }
}

const Json* child_schema(const Json& schema, const std::string& part) {
  if (const auto items = schema.find("items"); items != schema.end()) {
    return &*items;
  }
  if (const auto properties = schema.find("properties");
      properties != schema.end() && properties->contains(part)) {
    return &properties->at(part);
  }
  const auto others = schema.find("additionalProperties");
  return others != schema.end() && others->is_object() ? &*others : nullptr;
}

// Every alternative that the value at `place` is checked against.
Schemas schemas_at(const Json& root, const JsonPlace& place) {
  Schemas found;
  add_alternatives(root, root, found);
  for (const std::string& part : place) {
    Schemas inner;
    for (const Json* schema : found) {
      if (const Json* child = child_schema(*schema, part)) {
        add_alternatives(root, *child, inner);
      }
    }
    found = std::move(inner);
  }
  return found;
}

std::string bounds_text(const Json& schema) {
  std::vector<std::string> bounds;
  const auto add = [&](const char* keyword, const char* words) {
    if (const auto bound = schema.find(keyword); bound != schema.end()) {
      bounds.push_back(fmt::format("{} {}", words, dump_json(*bound)));
    }
  };
  add("minimum", "of at least");
  add("exclusiveMinimum", "above");
  add("maximum", "at most");
  return bounds.empty() ? "" : " " + joined(bounds, "and");
}

std::string list_text(const Json& schema) {
  const size_t least = schema.value("minItems", size_t{0});
  const size_t most = schema.value("maxItems", size_t{0});
  const std::string size = least == 0      ? "a list"
                           : least == most ? fmt::format("a list of {}", least)
                                           : fmt::format("a list of at least {}", least);
  return size + (schema.value("uniqueItems", false) ? ", none twice" : "");
}

// What one alternative allows: its "title" where it has one.
std::string allowed_text(const Json& schema) {
  if (const auto title = schema.find("title"); title != schema.end()) {
    return title->get<std::string>();
  }
  if (const auto values = schema.find("enum"); values != schema.end()) {
    std::vector<std::string> words;
    std::transform(values->begin(), values->end(), std::back_inserter(words),
                   [](const Json& value) { return dump_json(value); });
    return joined(words, "or");
  }
  const std::string type = schema.at("type").get<std::string>();
  if (type == "integer" || type == "number") {
    return (type == "integer" ? "a whole number" : "a number") + bounds_text(schema);
  }
  if (type == "array") {
    return list_text(schema);
  }
  if (type == "string") {
    return schema.value("minLength", size_t{0}) > 0 ? "a text that is not empty" : "a text";
  }
  return type == "boolean" ? "true or false" : "an object";
}

// What is wrong with the keys of an object.
struct KeyFaults {
  std::vector<std::string> unknown;
  std::vector<std::string> missing;
  std::vector<std::string> known;

  size_t count() const { return unknown.size() + missing.size(); }
};

std::vector<std::string> quoted(const Json& names) {
  std::vector<std::string> words;
  for (const Json& name : names) {
    words.push_back(dump_json(name));
  }
  return words;
}

KeyFaults key_faults(const Json& object, const Json& schema) {
  KeyFaults faults;
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [key, unused] : properties.items()) {
    faults.known.push_back(key);
  }
  for (const auto& [key, unused] : object.items()) {
    if (schema.value("additionalProperties", Json(true)) == false && !properties.contains(key)) {
      faults.unknown.push_back(dump_json(Json(key)));
    }
  }
  for (const Json& key : schema.value("required", Json::array())) {
    if (!object.contains(key.get<std::string>())) {
      faults.missing.push_back(dump_json(key));
    }
  }
  // Of an object's own alternatives kvlab's schemas use one kind: which keys are needed.
  std::vector<std::string> either;
  for (const Json& one : schema.value("oneOf", Json::array())) {
    const Json& keys = one.at("required");
    const bool present = std::all_of(keys.begin(), keys.end(), [&](const Json& key) {
      return object.contains(key.get<std::string>());
    });
    if (present) {
      return faults;
    }
    either.push_back(joined(quoted(keys), "and"));
  }
  if (!either.empty()) {
    faults.missing.push_back(joined(either, "or"));
  }
  return faults;
}

std::string key_complaint(const KeyFaults& faults) {
  std::vector<std::string> parts;
  if (!faults.missing.empty()) {
    parts.push_back(joined(faults.missing, "and") + " missing");
  }
  if (!faults.unknown.empty()) {
    parts.push_back(fmt::format("unknown {} {}; the keys are {}",
                                faults.unknown.size() == 1 ? "key" : "keys",
                                joined(faults.unknown, "and"), fmt::join(faults.known, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// The keys' faults by the alternative that the object is nearest to; none where it is no object.
std::optional<KeyFaults> nearest_key_faults(const Json& value, const Schemas& schemas) {
  std::optional<KeyFaults> nearest;
  for (const Json* schema : schemas) {
    if (value.is_object() && schema->value("type", "") == "object") {
      KeyFaults faults = key_faults(value, *schema);
      if (!nearest || faults.count() < nearest->count()) {
        nearest = std::move(faults);
      }
    }
  }
  return nearest;
}

bool encloses(const JsonPlace& outer, const JsonPlace& inner) {
  return outer.size() < inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

}  // namespace

std::vector<std::string> schema_complaints(const Json& value, const Json& schema,
                                           const std::vector<JsonPlace>& places) {
  std::vector<std::string> complaints;
  for (auto place = places.begin(); place != places.end(); ++place) {
    if (std::find(places.begin(), place, *place) != place) {
      continue;
    }
    const Json& here = value_at(value, *place);
    const Schemas schemas = schemas_at(schema, *place);
    const std::string where = place->empty() ? "" : place_text(value, *place) + ": ";
    const std::optional<KeyFaults> faults = nearest_key_faults(here, schemas);
    if (faults && faults->count() > 0) {
      complaints.push_back(where + key_complaint(*faults));
      continue;
    }
    const bool holds_another =
        std::any_of(places.begin(), places.end(),
                    [&](const JsonPlace& other) { return encloses(*place, other); });
    if (!holds_another && !schemas.empty()) {
      std::vector<std::string> allowed;
      for (const Json* one : schemas) {
        allowed.push_back(allowed_text(*one));
      }
      complaints.push_back(fmt::format("{}{} is not allowed; it takes {}", where, shown(here),
                                       joined(allowed, "or")));
    }
  }
  return complaints;
}

}  // namespace kvlab
