// Scores against those of the original Python packages (tests/golden/make_longbench_scores.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "benchmarks/longbench/metrics/jieba.h"
#include "benchmarks/longbench/metrics/metric.h"
#include "benchmarks/longbench/score_folder.h"
#include "benchmarks/longbench/tasks.h"
#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "harness/text/utf8.h"
#include "tests/benchmarks/longbench/mangled_replies.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(KVLAB_TEST_DIR) / "golden" / "longbench" / name;
}

bool jieba_is_there() {
  return std::filesystem::exists(cache_dir() / "data" / "jieba" / "hmm.tsv");
}

#define KVLAB_JIEBA_OR_SKIP()                                             \
  if (!jieba_is_there()) {                                                \
    GTEST_SKIP() << "needs jieba's data in the cache: run scripts/setup"; \
  }

TEST(LongBenchScores, EqualThePublishedResultsOfBothRuns) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  KVLAB_JIEBA_OR_SKIP();
  for (const char* run : {"llama2-7b-chat-quest-128", "llama3-8b-quest-256"}) {
    const std::filesystem::path folder = shared / "longbench_predictions" / run;
    const auto files =
        score_longbench_folder(folder, {.scoring = {.first_line = FirstLine::kAfterNewlines}});
    ASSERT_TRUE(files.ok()) << files.status();
    const auto published = read_json_file(folder / "result.json");
    ASSERT_TRUE(published.ok()) << published.status();
    EXPECT_EQ(files->size(), longbench_tasks().size());
    EXPECT_EQ(longbench_result_json(*files), *published) << run;
  }
}

struct Line {
  std::string reply;
  std::vector<std::string> references;
  std::vector<std::string> classes;
};

// The prediction files, each read once.
class Predictions {
 public:
  explicit Predictions(std::filesystem::path root) : root_(std::move(root)) {}

  Line line(const std::string& run, const std::string& task, size_t index) {
    std::vector<Json>& lines = files_[run + "/" + task];
    if (lines.empty()) {
      lines = read_json_lines(root_ / run / (task + ".jsonl")).value();
    }
    const Json& value = lines.at(index);
    return {value["pred"], value["answers"],
            value["all_classes"].is_null() ? std::vector<std::string>()
                                           : value["all_classes"].get<std::vector<std::string>>()};
  }

 private:
  std::filesystem::path root_;
  std::map<std::string, std::vector<Json>> files_;
};

TEST(LongBenchScores, EqualTheOriginalPackagesOnRealAndMangledReplies) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  KVLAB_JIEBA_OR_SKIP();
  const Json file = read_json_file(golden("scores.json")).value();
  Predictions predictions(shared / "longbench_predictions");
  size_t compared = 0;
  for (const Json& recipe : file["cases"]) {
    const std::string run = recipe["run"];
    const std::string task_name = recipe["task"];
    const Line line = predictions.line(run, task_name, recipe["line"]);
    const Line other = predictions.line(run, recipe["other_task"], recipe["other_line"]);
    MangleRandom random(std::stoull(recipe["seed"].get<std::string>()));
    const std::string reply =
        to_utf8(mangle(recipe["kind"].get<std::string>(), to_code_points(line.reply),
                       to_code_points(line.references[0]), to_code_points(other.reply), random));
    ASSERT_EQ(sha256_hex(reply).substr(0, 12), recipe["reply"]) << recipe;

    const LongBenchTask& task = **find_longbench_task(task_name);
    LongBenchScoring scoring;
    scoring.first_line = task.first_line_only ? FirstLine::kAfterNewlines : FirstLine::kNone;
    const auto score = longbench_score(task.metric, scoring, reply, line.references, line.classes);
    ASSERT_TRUE(score.ok()) << score.status();
    EXPECT_EQ(*score, recipe["score"].get<double>()) << recipe;
    if (recipe.contains("levenshtein")) {
      scoring.code_ratio = CodeRatio::kLevenshtein;
      EXPECT_EQ(longbench_score(task.metric, scoring, reply, line.references, {}).value(),
                recipe["levenshtein"].get<double>())
          << recipe;
    }
    ++compared;
  }
  EXPECT_GE(compared, 2000U);
}

TEST(LongBenchScores, EqualTheOriginalPackagesOnTextsOfOurOwn) {
  KVLAB_JIEBA_OR_SKIP();
  const std::map<std::string, LongBenchMetric> metrics = {
      {"f1", LongBenchMetric::kAnswerF1},
      {"f1_zh", LongBenchMetric::kAnswerF1Zh},
      {"rouge", LongBenchMetric::kRougeL},
      {"rouge_zh", LongBenchMetric::kRougeLZh},
      {"classification", LongBenchMetric::kClassification},
      {"count", LongBenchMetric::kCount},
      {"retrieval", LongBenchMetric::kRetrieval},
      {"retrieval_zh", LongBenchMetric::kRetrievalZh},
      {"code", LongBenchMetric::kCodeSimilarity},
      {"code_levenshtein", LongBenchMetric::kCodeSimilarity}};
  const Json file = read_json_file(golden("synthetic_scores.json")).value();
  const Jieba& jieba = **Jieba::shared();
  std::map<std::string, size_t> not_zero;
  for (const Json& example : file["cases"]) {
    const std::string reply = example["reply"];
    for (const auto& [name, expected] : example["scores"].items()) {
      LongBenchScoring scoring;
      scoring.code_ratio =
          name == "code_levenshtein" ? CodeRatio::kLevenshtein : CodeRatio::kDifflib;
      const auto score = longbench_score(metrics.at(name), scoring, reply,
                                         {example["references"][name]}, example["classes"]);
      ASSERT_TRUE(score.ok()) << score.status();
      EXPECT_EQ(*score, expected.get<double>()) << name << " " << example;
      not_zero[name] += *score > 0 ? 1 : 0;
    }
    std::vector<std::string> words;
    const std::u32string text = to_code_points(reply);
    for (const std::u32string_view word : jieba.cut(text)) {
      words.push_back(to_utf8(word));
    }
    EXPECT_EQ(Json(words), example["words"]);
  }
  for (const auto& [name, metric] : metrics) {
    EXPECT_GT(not_zero[name], 5U) << name << ": the golden file hardly tests it";
  }
}

}  // namespace
}  // namespace kvlab
