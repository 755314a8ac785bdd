// Finds and reads what RULER's tasks are made of: folders the user names, then the cache that
// scripts/fetch_data.py fills, then the free haystack.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "benchmarks/ruler/prompt_maker.h"
#include "benchmarks/ruler/tasks.h"

namespace kvlab {

// Folders laid out like these: wordlists/wonderwords/nounlist.txt, essays/*.txt, squad/*.json,
// hotpotqa/*.json, punkt/english/abbrev_types.txt. Empty: the folder of that name in the cache.
struct RulerSourcePaths {
  std::filesystem::path essays;
  std::filesystem::path squad;
  std::filesystem::path hotpotqa;
  std::filesystem::path wordlists;
  std::filesystem::path punkt;
};

struct LoadedSources {
  RulerSources sources;
  std::string name;  // what the texts are, e.g. "paul-graham-essays"; part of the data set's name
  std::string hash;  // SHA-256 over every source of the task
};

// Reads each source once and keeps it for further tasks. Not safe for concurrent use.
class RulerSourceLoader {
 public:
  explicit RulerSourceLoader(RulerSourcePaths paths) : paths_(std::move(paths)) {}

  // The sources of one task. A missing one is an error that names its option.
  absl::StatusOr<LoadedSources> load(const RulerTask& task);

  // The essays where there are any, or else the free haystack, with how sentences are split.
  absl::StatusOr<LoadedSources> load_haystack();

 private:
  absl::Status load_words();
  absl::StatusOr<std::shared_ptr<const QuestionSet>> load_questions(std::string_view set);

  RulerSourcePaths paths_;
  std::shared_ptr<const WordLists> words_;
  std::shared_ptr<const WordPairs> pairs_;
  std::shared_ptr<const EnglishWords> english_;
  std::optional<LoadedSources> haystack_;
  std::map<std::string, std::shared_ptr<const QuestionSet>, std::less<>> questions_;
};

}  // namespace kvlab
