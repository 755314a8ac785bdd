#include "benchmarks/ruler/file_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

namespace fs = std::filesystem;

// The folder's name as a length, or 0.
int64_t length_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int64_t length = 0;
  const auto result = std::from_chars(name.data(), name.data() + name.size(), length);
  return result.ec == std::errc() && result.ptr == name.data() + name.size() ? length : 0;
}

absl::StatusOr<RulerItem> read_item(const Json& json, const std::string& origin) {
  RulerItem item;
  KVLAB_ASSIGN_OR_RETURN(item.user_text, json_get<std::string>(json, "input", origin));
  KVLAB_ASSIGN_OR_RETURN(item.answer_prefix,
                         json_get_or<std::string>(json, "answer_prefix", "", origin));
  KVLAB_ASSIGN_OR_RETURN(item.length, json_get_or<int64_t>(json, "length", 0, origin));
  KVLAB_ASSIGN_OR_RETURN(const Json outputs, json_get<Json>(json, "outputs", origin));
  for (const Json& output : outputs.is_array() ? outputs : Json::array({outputs})) {
    if (!output.is_string()) {
      return data_loss("{}: an entry of 'outputs' is no string", origin);
    }
    item.outputs.push_back(output.get<std::string>());
  }
  if (item.outputs.empty()) {
    return data_loss("{}: 'outputs' is empty", origin);
  }
  if (item.user_text.empty()) {
    return data_loss("{}: 'input' is empty", origin);
  }
  item.input = item.user_text;
  return item;
}

}  // namespace

absl::StatusOr<std::vector<RulerFile>> find_ruler_files(const fs::path& folder,
                                                        const std::vector<std::string>& tasks,
                                                        bool every_task_needed) {
  std::vector<fs::path> places = {folder};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory() && length_of(entry.path()) > 0) {
      places.push_back(entry.path());
    }
  }
  if (error) {
    return not_found("folder: {} cannot be read: {}", folder.string(), error.message());
  }
  std::sort(places.begin() + 1, places.end(),
            [](const fs::path& a, const fs::path& b) { return length_of(a) < length_of(b); });
  std::vector<RulerFile> files;
  for (const std::string& name : tasks) {
    KVLAB_ASSIGN_OR_RETURN(const RulerTask* task, find_ruler_task(name));
    const size_t before = files.size();
    for (const fs::path& place : places) {
      for (const fs::path& path : {place / (name + ".jsonl"), place / name / "validation.jsonl"}) {
        if (fs::exists(path)) {
          files.push_back({task, path, length_of(fs::weakly_canonical(place))});
          break;
        }
      }
    }
    if (files.size() == before && every_task_needed) {
      return not_found("folder: {} holds neither {}.jsonl nor {}/validation.jsonl", folder.string(),
                       name, name);
    }
  }
  if (files.empty()) {
    return not_found("folder: {} holds no TASK.jsonl or TASK/validation.jsonl of RULER's tasks",
                     folder.string());
  }
  return files;
}

absl::StatusOr<RulerFileContents> read_ruler_file(const fs::path& path) {
  RulerFileContents contents;
  KVLAB_ASSIGN_OR_RETURN(contents.content_hash, sha256_file(path));
  KVLAB_ASSIGN_OR_RETURN(const std::vector<Json> lines, read_json_lines(path));
  for (const Json& line : lines) {
    const std::string origin =
        fmt::format("{}, record {}", path.string(), contents.items.size() + 1);
    KVLAB_ASSIGN_OR_RETURN(RulerItem item, read_item(line, origin));
    const bool has_prefix = line.contains("answer_prefix");
    if (!contents.items.empty() && has_prefix != contents.has_answer_prefix) {
      return data_loss("{}: {} 'answer_prefix', unlike the records before it", origin,
                       has_prefix ? "has an" : "has no");
    }
    contents.has_answer_prefix = has_prefix;
    item.index = static_cast<int64_t>(contents.items.size());
    contents.items.push_back(std::move(item));
  }
  if (contents.items.empty()) {
    return data_loss("{}: no prompts in it", path.string());
  }
  return contents;
}

}  // namespace kvlab
