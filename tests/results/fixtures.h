// Records and temporary folders for tests of results and reports.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "harness/base/check.h"
#include "results/record.h"
#include "results/store.h"

namespace kvlab {

// A folder that is removed with everything in it.
class TemporaryFolder final {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvlab_test_XXXXXX").string();
    KVLAB_CHECK(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline RunInfo test_run() {
  RunInfo info;
  info.version = "0.1.0";
  info.git_commit = "abc";
  info.build_type = "Release";
  info.machine = {{"cpu", "test"}};
  info.libraries = {{"sqlite", "3"}};
  info.config = {{"name", "test"}};
  info.command_line = "kvlab run test.json";
  return info;
}

inline SampleRecord test_sample(const std::string& task = "vt", int64_t index = 0,
                                int64_t length = 4096) {
  SampleRecord sample;
  sample.model = make_setting("tiny", {{"config_hash", "c"}, {"dtype", "bfloat16"}});
  sample.protocol = make_setting("ruler-official", {{"template", "model"}});
  sample.sample_key = "ruler/" + task + "/" + std::to_string(length) + "/" + std::to_string(index);
  sample.benchmark = "ruler";
  sample.dataset = "ruler-test-1";
  sample.task = task;
  sample.length = length;
  sample.index = index;
  sample.references = {"one", "two"};
  sample.extra = {{"depth", 50}};
  sample.text_hash = "text" + std::to_string(index);
  sample.prompt_hash = "prompt" + std::to_string(index);
  sample.prompt_tokens = length - 100;
  sample.question_start = length - 150;
  return sample;
}

inline ResultRecord test_result(const std::string& method = "snapkv",
                                const std::string& budget = "128", double score = 50) {
  ResultRecord result;
  result.method = make_setting(method, {{"window", 32}});
  result.budget = budget;
  if (budget != "full") {
    result.budget_entries = std::atoi(budget.c_str());
  }
  result.score = score;
  result.metric = "string match";
  result.reply = "a reply";
  result.reply_token_ids = {1, 300, 70000};
  result.stop_reason = "stop_token";
  result.new_tokens = 3;
  result.kept = {.min = 128, .max = 128, .mean = 128, .total = 128 * 90};
  result.cache_bytes = 1000;
  result.timings = {.prefill_s = 2,
                    .query_s = 0.01,
                    .score_s = 0.02,
                    .choose_s = 0.03,
                    .draft_s = 0.04,
                    .compact_s = 0.05,
                    .decode_s = 1.5,
                    .decode_steps = 3,
                    .arms_in_batch = 4};
  return result;
}

}  // namespace kvlab
