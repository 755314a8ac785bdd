// Instruction data as JSON lines, in the layouts of ChatQA2's long SFT data and of Tulu 3.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <vector>

#include "datasets/training/training_prompt.h"

namespace kvlab {

// Each line has "messages" ([{"role", "content"}, ...]), optionally "document" (put in front), or
// ChatQA2's "question" (document and question in one text) with "answer". The last
// assistant turn is dropped (kept as given_reply); earlier turns become part of the user's text.
// Lines without a user turn are an error that names the line.
absl::StatusOr<std::vector<TrainingPrompt>> read_instruction_file(const std::filesystem::path& path,
                                                                  int64_t max_new_tokens);

}  // namespace kvlab
