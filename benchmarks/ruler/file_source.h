// RULER prompts from JSON-lines files in NVIDIA's layout, made by NVIDIA's scripts or anyone else.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "benchmarks/ruler/generator.h"
#include "benchmarks/ruler/tasks.h"

namespace kvlab {

struct RulerFile {
  const RulerTask* task = nullptr;
  std::filesystem::path path;
  int64_t length = 0;  // the name of a folder above the file, where that is a number
};

// The tasks' files below `folder`: TASK.jsonl or TASK/validation.jsonl, in the folder itself or in
// folders named by a length. Errors: a task without a file, a folder without any.
absl::StatusOr<std::vector<RulerFile>> find_ruler_files(const std::filesystem::path& folder,
                                                        const std::vector<std::string>& tasks,
                                                        bool every_task_needed);

struct RulerFileContents {
  std::vector<RulerItem> items;
  std::string content_hash;  // SHA-256 of the file
  // False: an older layout, whose inputs may end with the beginning of the answer.
  bool has_answer_prefix = false;
};

// The lines of a file: `input` and `outputs`, and `answer_prefix`, in all of them or in none.
// Errors name the line.
absl::StatusOr<RulerFileContents> read_ruler_file(const std::filesystem::path& path);

}  // namespace kvlab
