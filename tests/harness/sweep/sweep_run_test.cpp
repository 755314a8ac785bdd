// Whole sweeps through the program on the default model: what a user relies on.
#include <gmock/gmock.h>

#include "tests/harness/sweep/sweep_process.h"
#include "tests/reports/documented_queries.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

class SweepRun : public SweepProcessTest {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    sweep_ = {{"model", model.string()},
              {"benchmarks",
               {{{"name", "ruler"},
                 {"tasks", {"niah_single_1", "vt", "fwe"}},
                 {"lengths", {1024}},
                 {"samples", 2},
                 {"seed", 7},
                 {"template", "model"}}}},
              {"methods", {"full", "snapkv", "streaming_llm", "laq"}},
              {"budgets", {64, 128}}};
  }

  Json sweep_;
};

TEST_F(SweepRun, RepliesDoNotDependOnOtherArmsOrTheOrderOfSamples) {
  ASSERT_EQ(run(sweep_, "all.sqlite"), 0) << log("all.sqlite");
  Json few = sweep_;
  few["methods"] = {"snapkv"};
  few["budgets"] = {128};
  few["benchmarks"][0]["tasks"] = {"fwe", "niah_single_1"};
  ASSERT_EQ(run(few, "few.sqlite"), 0) << log("few.sqlite");
  const auto all = replies("all.sqlite");
  const auto alone = replies("few.sqlite");
  EXPECT_EQ(alone.size(), 4U);
  for (const auto& [key, reply] : alone) {
    ASSERT_TRUE(all.contains(key)) << key;
    EXPECT_EQ(all.at(key), reply) << key;
  }
}

TEST_F(SweepRun, TheDocumentedQueriesAnswerWhatTheReportSays) {
  sweep_["benchmarks"][0]["tasks"] = {"niah_single_1"};
  ASSERT_EQ(run(sweep_, "queried.sqlite"), 0) << log("queried.sqlite");
  const auto store = ResultStore::open(file("queried.sqlite"), ResultStore::Mode::kRead).value();
  const std::vector<std::string> queries = documented_queries();
  ASSERT_EQ(queries.size(), 3U);
  const std::string report =
      output_of("report '" + file("queried.sqlite").string() + "' --format csv");
  auto means = store->database().prepare(queries[0]).value();
  int rows = 0;
  while (means.step().value()) {
    ++rows;
    EXPECT_EQ(means.int64(2), 2);
    EXPECT_THAT(report, HasSubstr(fmt::format("{},{},niah_single_1,string_match_all,{},",
                                              means.text(0), means.text(1), means.real(3))));
  }
  EXPECT_EQ(rows, 7);
  auto differing = store->database().prepare(queries[1]).value();
  while (differing.step().value()) {
    EXPECT_NE(differing.text(2), differing.text(3));
  }
  auto costs = store->database().prepare(queries[2]).value();
  rows = 0;
  while (costs.step().value()) {
    ++rows;
    // The full cache evicts nothing: its share rounds to zero.
    EXPECT_GE(costs.real(2), costs.text(0) == "snapkv" ? 0.01 : 0.0);
    EXPECT_EQ(costs.int64(3), 2);
  }
  EXPECT_EQ(rows, 7);
}

TEST_F(SweepRun, ABudgetThatCoversThePromptGivesTheFullCachesReply) {
  sweep_["methods"] = {"full",  "random", "snapkv", "streaming_llm", "pyramidkv",          "adakv",
                       "h2o",   "tova",   "knorm",  "keydiff",       "expected_attention", "laq",
                       "oracle"};
  sweep_["budgets"] = {4096};
  sweep_["benchmarks"][0]["tasks"] = {"vt"};
  ASSERT_EQ(run(sweep_, "covered.sqlite"), 0) << log("covered.sqlite");
  const auto rows = replies("covered.sqlite");
  EXPECT_EQ(rows.size(), 2U * 13U);
  std::map<std::string, std::string> full;
  for (const auto& [key, reply] : rows) {
    if (key.ends_with(" full full")) {
      full[key.substr(0, key.find(' '))] = reply;
    }
  }
  for (const auto& [key, reply] : rows) {
    EXPECT_EQ(reply, full.at(key.substr(0, key.find(' ')))) << key;
  }
}

TEST_F(SweepRun, AFullCacheOutsideItsSanityBandEndsTheRunAndKeepsItsRows) {
  sweep_["methods"] = {"full"};
  sweep_["benchmarks"][0]["tasks"] = {"niah_single_1"};
  sweep_["benchmarks"][0]["samples"] = 3;
  // Two full-cache cells a sample: the band is judged although no sample ends with exactly three.
  sweep_["question_aware"] = {true, false};
  sweep_["sanity"] = {{"after_samples", 2}, {"bands", {{"niah_single_1", {50, 100}}}}};
  ASSERT_EQ(run(sweep_, "sound.sqlite"), 0) << log("sound.sqlite");
  EXPECT_EQ(query("sound.sqlite", "SELECT COUNT(*) FROM scores"), 6);
  sweep_["sanity"]["bands"]["niah_single_1"] = {0, 10};
  EXPECT_NE(run(sweep_, "broken.sqlite"), 0);
  EXPECT_THAT(log("broken.sqlite"),
              ::testing::AllOf(HasSubstr("sanity band of 0 to 10"), HasSubstr("niah_single_1")));
  EXPECT_EQ(query("broken.sqlite", "SELECT COUNT(*) FROM scores"), 4);
}

TEST_F(SweepRun, BadSweepsAreRefusedBeforeAnythingRuns) {
  Json bad = sweep_;
  bad["methods"].push_back("snapkw");
  EXPECT_NE(run(bad, "a.sqlite"), 0);
  EXPECT_THAT(log("a.sqlite"), ::testing::AllOf(HasSubstr("methods[4]"), HasSubstr("snapkv")));
  bad = sweep_;
  bad["benchmarks"][0]["lengths"] = {16384};
  EXPECT_NE(run(bad, "b.sqlite"), 0);
  EXPECT_THAT(log("b.sqlite"), HasSubstr("positions"));
  bad = sweep_;
  bad["methods"] = {{{"name", "snapkv"}, {"params", {{"windw", 3}}}}};
  EXPECT_NE(run(bad, "c.sqlite"), 0);
  EXPECT_THAT(log("c.sqlite"), HasSubstr("windw"));
  bad = sweep_;
  bad["benchmarks"].push_back(bad["benchmarks"][0]);
  EXPECT_NE(run(bad, "d.sqlite"), 0);
  EXPECT_THAT(log("d.sqlite"), HasSubstr("is in benchmarks[0] too"));
  bad = sweep_;
  bad["model"] = {sweep_["model"], sweep_["model"]};
  EXPECT_NE(run(bad, "e.sqlite"), 0);
  EXPECT_THAT(log("e.sqlite"), HasSubstr("stands twice"));
  EXPECT_FALSE(std::filesystem::exists(file("a.sqlite")));
}

TEST_F(SweepRun, NamesThatTheSweepDoesNotHaveAreRefused) {
  Json bad = sweep_;
  bad["exclude"] = {{{"method", "full"}}, {{"method", "snapkw"}}};
  EXPECT_NE(run(bad, "a.sqlite"), 0);
  EXPECT_THAT(log("a.sqlite"),
              ::testing::AllOf(HasSubstr("exclude[1]"), HasSubstr("snapkw"), HasSubstr("snapkv")));
  bad["exclude"] = {{{"method", "full"}, {"budget", 64}}};
  EXPECT_NE(run(bad, "b.sqlite"), 0);
  EXPECT_THAT(log("b.sqlite"), HasSubstr("exclude[0]: no cell has all of"));
  bad = sweep_;
  bad["sanity"] = {{"bands", {{"niah", {0, 100}}}}};
  EXPECT_NE(run(bad, "c.sqlite"), 0);
  EXPECT_THAT(log("c.sqlite"), HasSubstr("no task \"niah\"; it has"));
}

}  // namespace
}  // namespace kvlab
