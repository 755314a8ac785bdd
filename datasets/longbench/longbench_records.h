// LongBench's records, as published: one JSON-lines file a task, in a folder or in data.zip.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kvlab {

struct LongBenchRecord {
  std::string id;       // unique within the file
  std::string context;  // the long text
  std::string input;    // the question, or the last part of a few-shot prompt; may be empty
  std::vector<std::string> answers;
  std::vector<std::string> classes;  // classification only
  std::string language;
  int64_t word_length = 0;  // words or characters, as LongBench counts them
};

struct LongBenchRecords {
  std::string content_hash;  // SHA-256 of the task's file
  std::vector<LongBenchRecord> records;
};

// `source` is a folder with `name`.jsonl in it, or a zip file with it in any folder. Errors name
// the file and line. Records without an `_id` get their line's number; one that stands twice gets
// the number behind it.
absl::StatusOr<LongBenchRecords> read_longbench_records(const std::filesystem::path& source,
                                                        std::string_view name);

}  // namespace kvlab
