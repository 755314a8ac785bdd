// A model's chat template, rendered once by Jinja2 into the text before and after the user's turn
// (scripts/render_prompt_format.py writes prompt_format.json; docs/architecture.md says why).
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace kvlab {

struct PromptFormat {
  std::string before_user;       // e.g. "<|im_start|>user\n"
  std::string after_user;        // e.g. "<|im_end|>\n<|im_start|>assistant\n"
  bool trims_user_text = false;  // the template strips white space around the user's text
  std::string system_text;       // the system message the template puts in by itself
  std::string template_hash;     // SHA-256 of the chat template

  // Reads prompt_format.json in `model_dir`; not found is an error that says how to make it.
  static absl::StatusOr<PromptFormat> load(const std::filesystem::path& model_dir);

  // The whole prompt up to where the model goes on writing.
  std::string render(std::string_view user_text, std::string_view answer_prefix) const;
};

}  // namespace kvlab
