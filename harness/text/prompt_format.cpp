#include "harness/text/prompt_format.h"

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/text/python_text.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

// Hash of the chat template that `model_dir` has now, by the same rules as the script that renders
// it; empty where there is none.
absl::StatusOr<std::string> current_template_hash(const std::filesystem::path& model_dir) {
  if (const auto path = model_dir / "chat_template.jinja"; std::filesystem::exists(path)) {
    KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
    return sha256_hex(text);
  }
  const auto path = model_dir / "tokenizer_config.json";
  if (!std::filesystem::exists(path)) {
    return std::string();
  }
  KVLAB_ASSIGN_OR_RETURN(const Json config, read_json_file(path));
  const auto it = config.is_object() ? config.find("chat_template") : config.end();
  if (!config.is_object() || it == config.end()) {
    return std::string();
  }
  if (it->is_string()) {
    return sha256_hex(it->get_ref<const std::string&>());
  }
  for (const Json& named : it->is_array() ? *it : Json::array()) {
    if (named.is_object() && named.value("name", Json()) == "default" &&
        named.value("template", Json()).is_string()) {
      return sha256_hex(named.at("template").get_ref<const std::string&>());
    }
  }
  return std::string();
}

std::string how_to_make(const std::filesystem::path& model_dir) {
  return fmt::format("{} scripts/render_prompt_format.py {}",
                     (cache_dir() / "python" / "bin" / "python").string(), model_dir.string());
}

// Jinja's trim is Python's str.strip().
std::string_view trim(std::string_view text) {
  while (!text.empty()) {
    const CodePointAt first = code_point_at(text, 0);
    if (!is_python_space(first.code_point)) {
      break;
    }
    text.remove_prefix(first.length);
  }
  while (!text.empty()) {
    const size_t last = last_character(text);
    if (!is_python_space(code_point_at(text, last).code_point)) {
      break;
    }
    text = text.substr(0, last);
  }
  return text;
}

}  // namespace

absl::StatusOr<PromptFormat> PromptFormat::load(const std::filesystem::path& model_dir) {
  const std::filesystem::path path = model_dir / "prompt_format.json";
  if (!std::filesystem::exists(path)) {
    return not_found("{} is missing; make it from the model's chat template: {}", path.string(),
                     how_to_make(model_dir));
  }
  KVLAB_ASSIGN_OR_RETURN(const Json file, read_json_file(path));
  const std::string origin = path.string();
  PromptFormat format;
  KVLAB_ASSIGN_OR_RETURN(format.before_user, json_get<std::string>(file, "before_user", origin));
  KVLAB_ASSIGN_OR_RETURN(format.after_user, json_get<std::string>(file, "after_user", origin));
  KVLAB_ASSIGN_OR_RETURN(format.trims_user_text,
                         json_get_or<bool>(file, "trims_user_text", false, origin));
  KVLAB_ASSIGN_OR_RETURN(format.system_text,
                         json_get_or<std::string>(file, "system_text", "", origin));
  KVLAB_ASSIGN_OR_RETURN(format.template_hash,
                         json_get_or<std::string>(file, "template_hash", "", origin));
  KVLAB_ASSIGN_OR_RETURN(const std::string source,
                         json_get_or<std::string>(file, "template_source", "", origin));
  // Files written by hand name no template, and a template given by hand is not the model's.
  if (!format.template_hash.empty() && source != "file given by hand") {
    KVLAB_ASSIGN_OR_RETURN(const std::string current, current_template_hash(model_dir));
    if (!current.empty() && current != format.template_hash) {
      return failed_precondition(
          "{} was made from another chat template than the model has now; "
          "make it again: {}",
          origin, how_to_make(model_dir));
    }
  }
  return format;
}

std::string PromptFormat::render(std::string_view user_text, std::string_view answer_prefix) const {
  std::string prompt = before_user;
  prompt += trims_user_text ? trim(user_text) : user_text;
  prompt += after_user;
  prompt += answer_prefix;
  return prompt;
}

}  // namespace kvlab
