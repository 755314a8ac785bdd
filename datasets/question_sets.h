// Questions with the documents that answer them: SQuAD 2.0 and HotpotQA.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kvlab {

struct Question {
  std::string text;
  std::vector<std::string> answers;      // repeats kept, in the file's order
  std::vector<uint32_t> documents;       // indices of the documents that come with the question
  std::vector<uint32_t> more_documents;  // others of the same article (SQuAD)
};

struct QuestionSet {
  std::string name;                    // "squad" or "hotpotqa"
  std::vector<std::string> documents;  // sorted by code point, without repeats
  std::vector<Question> questions;
  std::string content_hash;  // SHA-256 of the file

  // The file itself, or a folder with squad.json or exactly one .json file. Questions marked
  // impossible are left out.
  static absl::StatusOr<QuestionSet> load_squad(const std::filesystem::path& path);
  // The distractor setting: a list of {question, answer, context: [[title, [sentence]]]}.
  static absl::StatusOr<QuestionSet> load_hotpotqa(const std::filesystem::path& path);
};

}  // namespace kvlab
