#include "datasets/haystack.h"

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"
#include "harness/text/python_utf8.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

absl::StatusOr<Haystack> from_text(const std::filesystem::path& path, std::string_view text,
                                   std::string name) {
  Haystack haystack;
  haystack.name = std::move(name);
  const std::string valid = to_valid_utf8(text);
  if (python_strip(valid).empty()) {
    return data_loss("{}: no text in it", path.string());
  }
  haystack.words = python_words(valid);
  haystack.content_hash = sha256_hex(valid);
  return haystack;
}

absl::StatusOr<Haystack> join_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".txt") {
      files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    return not_found("{}: holds no RULER_PaulGrahamEssays.txt, PaulGrahamEssays.json or other .txt",
                     folder.string());
  }
  std::sort(files.begin(), files.end());
  std::string text;
  for (const std::filesystem::path& file : files) {
    KVLAB_ASSIGN_OR_RETURN(const std::string essay, read_file(file));
    text += essay;
  }
  return from_text(folder, text, fmt::format("{}-essays", files.size()));
}

}  // namespace

absl::StatusOr<Haystack> Haystack::load_essays(const std::filesystem::path& path) {
  constexpr std::string_view kName = "paul-graham-essays";
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(path)) {
    file = path / "RULER_PaulGrahamEssays.txt";
    if (!std::filesystem::exists(file)) {
      file = path / "PaulGrahamEssays.json";
    }
    if (!std::filesystem::exists(file)) {
      return join_folder(path);
    }
  }
  if (file.extension() == ".json") {
    KVLAB_ASSIGN_OR_RETURN(const Json json, read_json_file(file));
    KVLAB_ASSIGN_OR_RETURN(const std::string text,
                           json_get<std::string>(json, "text", file.string()));
    return from_text(file, text, std::string(kName));
  }
  return load_text(file, std::string(kName));
}

absl::StatusOr<Haystack> Haystack::load_text(const std::filesystem::path& path, std::string name) {
  KVLAB_ASSIGN_OR_RETURN(const std::string text, read_file(path));
  return from_text(path, text, std::move(name));
}

}  // namespace kvlab
