// Replies leave a database as the files that LongBench's scorer reads, and score the same there.
#include "results/export_predictions.h"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <set>

#include "benchmarks/longbench/score_folder.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

class ExportPredictions : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = ResultStore::open(folder_.path() / "r.sqlite", ResultStore::Mode::kCreate).value();
    ASSERT_TRUE(store_->begin_run(test_run()).ok());
  }

  void add(
      const std::string& task, int64_t index, int64_t words, const std::string& reply,
      const std::vector<ResultRecord>& more = {},
      const std::function<void(SampleRecord&)>& change = [](SampleRecord&) {}) {
    SampleRecord sample = test_sample(task, index, 0);
    sample.benchmark = "longbench";
    sample.protocol = make_setting("longbench-official", {{"name", "longbench-official"}});
    sample.references = {"the river"};
    sample.extra = {{"word_length", words}, {"language", "en"}};
    change(sample);
    std::vector<ResultRecord> results = more;
    results.push_back(test_result());
    for (ResultRecord& result : results) {
      result.reply = reply;
    }
    ASSERT_TRUE(store_->write_sample(sample, results).ok());
  }

  absl::StatusOr<ExportedPredictions> export_to(const std::string& name) {
    return export_longbench_predictions(store_->database(), folder_.path() / name);
  }

  TemporaryFolder folder_;
  std::unique_ptr<ResultStore> store_;
};

TEST_F(ExportPredictions, TheFilesScoreByTaskAndByLength) {
  add("qasper", 0, 100, "river");
  add("qasper", 1, 100, "no \"idea\"\n");
  add("qasper_e", 0, 3999, "the river");
  add("qasper_e", 1, 4000, "a bridge");
  add("qasper_e", 2, 9000, "the river");
  const auto exported = export_to("pred");
  ASSERT_TRUE(exported.ok()) << exported.status();
  ASSERT_EQ(exported->files.size(), 2U);
  const auto folder = folder_.path() / "pred" / "tiny" / "longbench-official" / "snapkv-128";
  EXPECT_EQ(exported->files.front(), folder / "qasper.jsonl");

  const auto scores = score_longbench_folder(folder, {}).value();
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].percent, 50);
  EXPECT_EQ(scores[1].bucket_count, (std::array<size_t, 3>{1, 1, 1}));
  EXPECT_EQ(*scores[1].bucket_percent[0], 100);
  EXPECT_EQ(*scores[1].bucket_percent[1], 0);
  EXPECT_EQ(*scores[1].bucket_percent[2], 100);
}

TEST_F(ExportPredictions, MethodsOfOneLabelGetFoldersOfTheirOwn) {
  ResultRecord wide = test_result();
  wide.method = make_setting("snapkv", {{"window", 64}});
  add("qasper", 0, 100, "river", {wide});
  EXPECT_EQ(export_to("pred").value().files.size(), 2U);
}

TEST_F(ExportPredictions, ExperimentsOfOneNameGetFoldersOfTheirOwn) {
  const auto in_float32 = [](SampleRecord& sample) {
    sample.model = make_setting("tiny", {{"config_hash", "c"}, {"dtype", "float32"}});
  };
  for (const std::string task : {"qasper", "narrativeqa"}) {
    add(task, 0, 100, "of bfloat16");
    add(task, 0, 100, "of float32", {}, in_float32);
  }
  std::map<std::filesystem::path, std::set<std::string>> replies;  // by folder
  const auto exported = export_to("dtypes").value();
  for (const auto& file : exported.files) {
    replies[file.parent_path()].insert(parse_json(read_file(file).value(), "").value()["pred"]);
  }
  ASSERT_EQ(replies.size(), 2U);
  for (const auto& [folder, texts] : replies) {
    EXPECT_EQ(texts.size(), 1U) << folder;
  }
}

TEST_F(ExportPredictions, DataSetsOfOneTaskGetFoldersOfTheirOwn) {
  add("narrativeqa", 0, 100, "x");
  add("qasper", 0, 100, "x");
  add("qasper", 0, 100, "y", {}, [](SampleRecord& sample) { sample.dataset = "another"; });
  const auto files = export_to("datasets").value().files;
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(std::set<std::filesystem::path>(files.begin(), files.end()).size(), 3U);
}

TEST_F(ExportPredictions, FailedCellsAreInNoFileAndCounted) {
  ResultRecord failed = test_result("h2o");
  failed.status = CellStatus::kFailed;
  failed.reason = "out of memory";
  add("qasper", 0, 100, "river", {failed});
  const auto exported = export_to("pred").value();
  EXPECT_EQ(exported.files.size(), 1U);
  EXPECT_EQ(exported.failed, 1);
}

TEST_F(ExportPredictions, NothingIsOverwrittenAndNothingToWriteIsSaid) {
  EXPECT_THAT(message_of(export_to("pred").status()), HasSubstr("no LongBench replies"));
  add("qasper", 0, 100, "river");
  ASSERT_TRUE(write_file(folder_.path() / "pred" / "mine.txt", "x").ok());
  EXPECT_THAT(message_of(export_to("pred").status()), HasSubstr("not an empty folder"));
}

}  // namespace
}  // namespace kvlab
