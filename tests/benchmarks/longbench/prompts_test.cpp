// LongBench prompts against transformers' (tests/golden/make_longbench_prompts.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "benchmarks/longbench/longbench_benchmark.h"
#include "benchmarks/longbench/tasks.h"
#include "harness/base/sha256.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

Json golden() {
  return read_json_file(std::filesystem::path(KVLAB_TEST_DIR) / "golden/longbench/prompts.json")
      .value();
}

std::string ids_hash(const std::vector<int32_t>& ids) {  // little-endian int32, as here in memory
  return sha256_hex({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(int32_t)});
}

TEST(LongBenchPrompts, PatternsAreTheOfficialOnes) {
  const Json hashes = golden()["pattern_sha256"];
  EXPECT_EQ(hashes.size(), longbench_tasks().size());
  for (const LongBenchTask& task : longbench_tasks()) {
    const LongBenchPromptParts parts = fill_longbench_prompt(task, "{context}", "{input}");
    EXPECT_EQ(sha256_hex(parts.context + parts.question + parts.cue),
              hashes[std::string(task.name)])
        << task.name;
  }
}

TEST(LongBenchPrompts, FillingReplacesOnlyThePatternsOwnPlaceholders) {
  const LongBenchTask& task = **find_longbench_task("trec");
  const LongBenchPromptParts parts = fill_longbench_prompt(task, "{input} {context}", "{context}");
  EXPECT_TRUE(parts.context.ends_with("{input} {context}\n"));
  EXPECT_EQ(parts.question, "{context}");
}

std::vector<int32_t> first_and_last(const std::vector<int32_t>& ids, bool first) {
  const size_t n = std::min<size_t>(8, ids.size());
  return first ? std::vector<int32_t>(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n))
               : std::vector<int32_t>(ids.end() - static_cast<std::ptrdiff_t>(n), ids.end());
}

class LongBenchGoldenPrompts : public testing::TestWithParam<const char*> {};

TEST_P(LongBenchGoldenPrompts, HaveTransformersTokenIds) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const std::string family = GetParam();
  const Json file = golden();
  const Json& format_json = file["formats"][family];
  const auto tokenizer =
      Tokenizer::load(shared / "model_configs" / format_json["folder"].get<std::string>());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  PromptFormat format;
  format.before_user = format_json["before_user"];
  format.after_user = format_json["after_user"];
  format.trims_user_text = format_json["trims_user_text"];
  const LongBenchBenchmark benchmark;
  size_t compared = 0;
  for (const Json& expected : file["cases"]) {
    if (expected["family"] != family) {
      continue;
    }
    std::string task = expected["file"];
    const bool e = task.ends_with("_e");
    task = e ? task.substr(0, task.size() - 2) : task;
    const auto samples = benchmark.load_samples({{"folder", (shared / "longbench").string()},
                                                 {"tasks", task},
                                                 {"e", e},
                                                 {"samples", 1},
                                                 {"bos", "official-double"},
                                                 {"clean_up_spaces", expected["clean_up"]},
                                                 {"max_prompt_tokens", expected["limit"]}},
                                                **tokenizer, format);
    ASSERT_TRUE(samples.ok()) << samples.status();
    const auto prompt = build_prompt(prompt_request(samples->at(0), false), **tokenizer, format);
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    EXPECT_EQ(first_and_last(prompt->token_ids, true), expected["first"]) << expected;
    EXPECT_EQ(first_and_last(prompt->token_ids, false), expected["last"]) << expected;
    EXPECT_EQ(prompt->token_ids.size(), expected["count"]) << expected;
    EXPECT_EQ(ids_hash(prompt->token_ids), expected["sha256"]) << expected;
    ++compared;
  }
  EXPECT_GE(compared, 68U);  // 34 files, with and without a limit
}

INSTANTIATE_TEST_SUITE_P(Families, LongBenchGoldenPrompts,
                         testing::Values("smollm2", "llama-3.1", "qwen3", "mistral-v0.2"),
                         [](const auto& family) {
                           std::string name = family.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

}  // namespace
}  // namespace kvlab
