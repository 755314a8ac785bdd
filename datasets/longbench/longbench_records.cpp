#include "datasets/longbench/longbench_records.h"

#include <set>
#include <utility>

#include "datasets/longbench/zip_file.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{4} << 30;  // LongBench's largest file has 30 MB

struct NamedText {
  std::string origin;
  std::string text;
};

absl::StatusOr<NamedText> read_task_file(const std::filesystem::path& source,
                                         std::string_view name) {
  const std::string file_name = fmt::format("{}.jsonl", name);
  if (std::filesystem::is_directory(source)) {
    const std::filesystem::path path = source / file_name;
    if (!std::filesystem::exists(path)) {
      return not_found(
          "{} is missing; LongBench's files are in data.zip of the data set THUDM/LongBench",
          path.string());
    }
    KVLAB_ASSIGN_OR_RETURN(std::string text, read_file(path));
    return NamedText{path.string(), std::move(text)};
  }
  if (!std::filesystem::exists(source)) {
    return not_found("{}: no such folder or zip file with LongBench's files", source.string());
  }
  KVLAB_ASSIGN_OR_RETURN(std::string text, read_from_zip(source, file_name, kMaxFileBytes));
  return NamedText{fmt::format("{}, {}", source.string(), file_name), std::move(text)};
}

absl::StatusOr<std::vector<std::string>> strings(const Json& value, const char* key,
                                                 std::string_view origin) {
  const auto it = value.find(key);
  std::vector<std::string> out;
  if (it == value.end() || it->is_null()) {
    return out;
  }
  bool right = it->is_array();
  for (const Json& element : right ? *it : Json::array()) {
    right = right && element.is_string();
    out.push_back(element.is_string() ? element.get<std::string>() : std::string());
  }
  if (!right) {
    return invalid_argument("{}: \"{}\" must be a list of strings", origin, key);
  }
  return out;
}

absl::StatusOr<LongBenchRecord> parse_record(const Json& value, const std::string& origin) {
  LongBenchRecord record;
  KVLAB_ASSIGN_OR_RETURN(record.context, json_get<std::string>(value, "context", origin));
  KVLAB_ASSIGN_OR_RETURN(record.input, json_get<std::string>(value, "input", origin));
  KVLAB_ASSIGN_OR_RETURN(record.id, json_get_or<std::string>(value, "_id", "", origin));
  KVLAB_ASSIGN_OR_RETURN(record.language, json_get_or<std::string>(value, "language", "", origin));
  KVLAB_ASSIGN_OR_RETURN(record.word_length, json_get_or<int64_t>(value, "length", 0, origin));
  KVLAB_ASSIGN_OR_RETURN(record.answers, strings(value, "answers", origin));
  KVLAB_ASSIGN_OR_RETURN(record.classes, strings(value, "all_classes", origin));
  if (record.answers.empty()) {
    return invalid_argument("{}: \"answers\" is missing or empty", origin);
  }
  return record;
}

}  // namespace

absl::StatusOr<LongBenchRecords> read_longbench_records(const std::filesystem::path& source,
                                                        std::string_view name) {
  KVLAB_ASSIGN_OR_RETURN(const NamedText file, read_task_file(source, name));
  KVLAB_ASSIGN_OR_RETURN(const std::vector<JsonLine> lines,
                         parse_json_lines(file.text, file.origin));
  LongBenchRecords out;
  out.content_hash = sha256_hex(file.text);
  std::set<std::string> ids;
  for (const JsonLine& line : lines) {
    KVLAB_ASSIGN_OR_RETURN(
        LongBenchRecord record,
        parse_record(line.value, fmt::format("{}, line {}", file.origin, line.number)));
    if (record.id.empty()) {
      record.id = std::to_string(line.number);
    }
    if (!ids.insert(record.id).second) {
      record.id += fmt::format("#{}", line.number);
      ids.insert(record.id);
    }
    out.records.push_back(std::move(record));
  }
  if (out.records.empty()) {
    return invalid_argument("{}: no records in it", file.origin);
  }
  return out;
}

}  // namespace kvlab
