// Plain text documents that training prompts are made of.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kvlab {

struct TrainingDocument {
  std::string source;  // name of the folder it came from: "git", "python", ...
  std::string name;
  bool is_code = false;
  std::string text;
  std::vector<std::string> paragraphs;  // separated by empty lines, at least 80 characters each
};

struct TrainingCorpus {
  std::vector<TrainingDocument> documents;
  std::vector<std::string> words;  // distinct lower-case words of 4 to 9 letters, sorted
  std::string hash;                // SHA-256 over names and texts
};

// Reads every *.txt below `dir`/<source>/. Files made from *.py, *.c, *.h, *.sh count as code.
absl::StatusOr<TrainingCorpus> load_training_corpus(const std::filesystem::path& dir);

}  // namespace kvlab
