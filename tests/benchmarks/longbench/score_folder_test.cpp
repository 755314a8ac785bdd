#include "benchmarks/longbench/score_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

class ScoreFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              ("score_folder_" +
               std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(folder_ / name, text).ok());
  }
  absl::StatusOr<std::vector<LongBenchFileScore>> score(bool by_length = false) {
    return score_longbench_folder(
        folder_, {.scoring = {.first_line = FirstLine::kAfterNewlines}, .by_length = by_length});
  }
  std::string error() { return std::string(score().status().message()); }

  std::filesystem::path folder_;
};

constexpr char kRight[] = R"({"pred":"cat","answers":["cat"],"all_classes":null,"length":3999})";
constexpr char kWrong[] = R"({"pred":"dog","answers":["cat"],"all_classes":null,"length":4000})";

TEST_F(ScoreFolder, ReportsLongBenchEByLength) {
  put("qasper_e.jsonl", std::string(kRight) + "\n" + kWrong + "\n");
  const auto files = score();
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(longbench_result_json(*files),
            Json::parse(R"({"qasper_e":{"0-4k":100.0,"4-8k":0.0,"8k+":null}})"));
}

TEST_F(ScoreFolder, PlainNamesAreReportedByLengthOnRequest) {
  put("qasper.jsonl", kRight);
  EXPECT_EQ(longbench_result_json(score().value()), Json::parse(R"({"qasper":100.0})"));
  EXPECT_EQ(longbench_result_json(score(true).value())["qasper"]["0-4k"], 100.0);
}

TEST_F(ScoreFolder, TheLastLinesClassesServeAllLines) {
  put("trec.jsonl", R"({"pred":"A b","answers":["A"],"all_classes":["A","b"]}
{"pred":"A b","answers":["A"],"all_classes":["A"]})");
  EXPECT_EQ(score().value()[0].percent, 100.0);
}

TEST_F(ScoreFolder, ErrorsNameFileAndLine) {
  put("qasper.jsonl", std::string(kRight) + "\n\n{\"pred\":1}\n");
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("qasper.jsonl, line 3"), HasSubstr("pred")));
  put("qasper.jsonl", std::string(kRight) + "\n{\"pred\":");
  EXPECT_THAT(error(), HasSubstr("qasper.jsonl, line 2"));
  put("qasper.jsonl", "[1]\n");
  EXPECT_THAT(error(), HasSubstr("qasper.jsonl, line 1"));
  put("qasper.jsonl", R"({"pred":"x","answers":"cat"})");
  EXPECT_THAT(error(), HasSubstr("\"answers\" must be a list of strings"));
  put("qasper.jsonl", "\n");
  EXPECT_THAT(error(), HasSubstr("no predictions"));
}

TEST_F(ScoreFolder, MissingClassesLengthOrNumberAreErrors) {
  put("trec.jsonl", kRight);
  EXPECT_THAT(error(), HasSubstr("trec.jsonl, line 1: \"all_classes\""));
  std::filesystem::remove(folder_ / "trec.jsonl");
  put("passage_retrieval_en.jsonl", kRight);
  EXPECT_THAT(error(), HasSubstr("passage_retrieval_en.jsonl, line 1: the reference"));
  std::filesystem::remove(folder_ / "passage_retrieval_en.jsonl");
  put("qasper_e.jsonl", R"({"pred":"x","answers":["x"]})");
  EXPECT_THAT(error(), HasSubstr("\"length\" is missing"));
}

TEST_F(ScoreFolder, UnknownTasksAndEmptyFoldersSayWhatIsExpected) {
  EXPECT_THAT(error(), HasSubstr("expected LongBench prediction files"));
  put("squad.jsonl", kRight);
  EXPECT_THAT(error(), testing::AllOf(HasSubstr("\"squad\" is no task"), HasSubstr("qasper")));
  folder_ /= "missing";
  EXPECT_THAT(error(), HasSubstr("cannot be listed"));
}

}  // namespace
}  // namespace kvlab
