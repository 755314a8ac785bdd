#include "datasets/training/instruction_files.h"

#include "harness/base/json.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

absl::StatusOr<TrainingPrompt> from_messages(const Json& line, std::string_view origin) {
  TrainingPrompt prompt;
  std::string text;
  int64_t user_turns = 0;
  const Json& messages = line.at("messages");
  for (size_t i = 0; i < messages.size(); ++i) {
    KVLAB_ASSIGN_OR_RETURN(const std::string role,
                           json_get<std::string>(messages[i], "role", origin));
    KVLAB_ASSIGN_OR_RETURN(const std::string content,
                           json_get<std::string>(messages[i], "content", origin));
    if (role == "assistant" && i + 1 == messages.size()) {
      prompt.given_reply = content;
      continue;
    }
    if (role == "user") {
      ++user_turns;
    }
    // A conversation with earlier replies is written out, since a prompt is one user turn.
    const bool only_turn = messages.size() <= 2;
    if (role == "assistant") {
      text += "\n\nAssistant: " + content;
    } else if (!only_turn && role == "user") {
      text += (text.empty() ? "User: " : "\n\nUser: ") + content;
    } else {
      text += (text.empty() ? "" : "\n\n") + content;
    }
  }
  if (user_turns == 0) {
    return invalid_argument("{}: no message with the role \"user\"", origin);
  }
  KVLAB_ASSIGN_OR_RETURN(const std::string document,
                         json_get_or<std::string>(line, "document", "", origin));
  prompt.text = document.empty() ? text : document + "\n\n" + text;
  return prompt;
}

}  // namespace

absl::StatusOr<std::vector<TrainingPrompt>> read_instruction_file(const std::filesystem::path& path,
                                                                  int64_t max_new_tokens) {
  KVLAB_ASSIGN_OR_RETURN(const std::vector<Json> lines, read_json_lines(path));
  std::vector<TrainingPrompt> prompts;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string origin = fmt::format("{}, record {}", path.string(), i + 1);
    const Json& line = lines[i];
    TrainingPrompt prompt;
    if (line.is_object() && line.contains("messages") && line.at("messages").is_array()) {
      KVLAB_ASSIGN_OR_RETURN(prompt, from_messages(line, origin));
    } else if (line.is_object() && line.contains("question")) {
      KVLAB_ASSIGN_OR_RETURN(prompt.text, json_get<std::string>(line, "question", origin));
      if (line.contains("answer") && line.at("answer").is_string()) {
        prompt.given_reply = line.at("answer").get<std::string>();
      }
    } else {
      return invalid_argument(
          "{}: neither \"messages\" (Tulu 3, ChatQA2 with documents) nor \"question\" (ChatQA2)",
          origin);
    }
    prompt.kind = "instruction";
    prompt.max_new_tokens = max_new_tokens;
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace kvlab
