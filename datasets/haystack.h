// Long plain texts that needles are hidden in.
#pragma once

#include <absl/status/statusor.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kvlab {

struct Haystack {
  std::string name;                // "paul-graham-essays", or another text's name
  std::vector<std::string> words;  // the text split at white space, as RULER splits it
  std::string content_hash;        // SHA-256 of the text

  // RULER's haystack: RULER_PaulGrahamEssays.txt (the text) or PaulGrahamEssays.json
  // ({"text": ...}) in the folder `path`, or `path` as such a file. A folder of other .txt files
  // is joined in the order of their names, as RULER joins its first 49 essays, under another name.
  static absl::StatusOr<Haystack> load_essays(const std::filesystem::path& path);

  // Any text file as a haystack under the name `name`.
  static absl::StatusOr<Haystack> load_text(const std::filesystem::path& path, std::string name);
};

}  // namespace kvlab
