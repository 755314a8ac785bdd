#include "results/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;
using Mode = ResultStore::Mode;

class MergeTest : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

  // Writes samples first, first + step, ... below `end`, each with these results.
  std::filesystem::path write(const std::string& name, int64_t first, int64_t end, int64_t step,
                              const std::vector<ResultRecord>& results) {
    auto store = ResultStore::open(file(name), Mode::kCreate).value();
    EXPECT_TRUE(store->begin_run(test_run()).ok());
    for (int64_t i = first; i < end; i += step) {
      const auto written = store->write_sample(test_sample("vt", i), results);
      EXPECT_TRUE(written.ok()) << written.status();
    }
    EXPECT_TRUE(store->finish_run("done").ok());
    return file(name);
  }

  int64_t query(const std::string& name, const std::string& sql) const {
    return ResultStore::open(file(name), Mode::kRead).value()->database().query_int(sql).value();
  }

  absl::StatusOr<std::vector<MergeCounts>> merge(const std::vector<std::filesystem::path>& sources,
                                                 OnConflict on_conflict = OnConflict::kRefuse) {
    return merge_databases(sources, file("all.sqlite"), on_conflict);
  }

  // Everything a table is made from, as one text.
  std::string scores(const std::string& name) const {
    auto store = ResultStore::open(file(name), Mode::kRead).value();
    auto select = store->database()
                      .prepare(
                          "SELECT key, model, task, length, protocol, method, params, budget, "
                          "sample, score, metric, reply, kept_total, prompt_tokens "
                          "FROM scores ORDER BY key")
                      .value();
    std::string all;
    while (select.step().value()) {
      for (int i = 0; i < 14; ++i) {
        all += select.text(i) + "|";
      }
      all += "\n";
    }
    return all;
  }

  TemporaryFolder folder_;
};

TEST_F(MergeTest, ShardsBecomeTheUnshardedDatabaseAndAgainChangesNothing) {
  const std::vector<ResultRecord> results = {test_result("full", "full", 90), test_result()};
  write("whole.sqlite", 0, 10, 1, results);
  const auto a = write("a.sqlite", 0, 10, 2, results);
  const auto b = write("b.sqlite", 1, 10, 2, results);
  const auto merged = merge({a, b});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ((*merged)[0].added, 10);
  EXPECT_EQ((*merged)[1].added, 10);
  EXPECT_EQ(scores("all.sqlite"), scores("whole.sqlite"));
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM runs"), 2);

  const auto again = merge({b, a});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)[0].added + (*again)[1].added, 0);
  EXPECT_EQ((*again)[0].same, 10);
  EXPECT_EQ(scores("all.sqlite"), scores("whole.sqlite"));
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM runs"), 2);
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM replies"), 20);
}

TEST_F(MergeTest, ACellThatFailedInOneAndNotInTheOtherIsKeptAsOk) {
  ResultRecord failed = test_result("h2o");
  failed.status = CellStatus::kFailed;
  failed.reason = "out of memory";
  const auto a = write("a.sqlite", 0, 1, 1, {failed});
  ResultRecord good = test_result("h2o");
  good.selection = Selection{.prompt_len = 5, .kept = {{{1, 2}}}};
  const auto b = write("b.sqlite", 0, 1, 1, {good});
  const auto merged = merge({a, b});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ((*merged)[1].replaced, 1);
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM scores"), 1);
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM failures"), 0);
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM selections"), 1);
  // And a later failure does not displace it.
  EXPECT_TRUE(merge({a}).ok());
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM scores"), 1);
}

TEST_F(MergeTest, EqualOutcomesWithOtherTimingsAreNoConflict) {
  ResultRecord slow = test_result();
  slow.timings.prefill_s = 99;
  const auto a = write("a.sqlite", 0, 3, 1, {test_result()});
  const auto b = write("b.sqlite", 0, 3, 1, {slow});
  const auto merged = merge({a, b});
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ((*merged)[1].same, 3);
  EXPECT_EQ(query("all.sqlite", "SELECT max(prefill_s) FROM results"), 2);
}

TEST_F(MergeTest, ConflictsAreRefusedOrRecordedAndNeverLost) {
  ResultRecord other = test_result();
  other.reply = "another reply";
  const auto a = write("a.sqlite", 0, 4, 1, {test_result()});
  const auto b = write("b.sqlite", 2, 6, 1, {other});
  const auto refused = merge({a, b});
  EXPECT_THAT(message_of(refused.status()), HasSubstr("2 cells with another outcome"));
  EXPECT_THAT(message_of(refused.status()),
              HasSubstr(cell_key(test_sample("vt", 2), test_result())));
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM results"), 4);

  for (int round = 0; round < 2; ++round) {
    const auto recorded = merge({b}, OnConflict::kRecord);
    ASSERT_TRUE(recorded.ok()) << recorded.status();
    EXPECT_EQ((*recorded)[0].conflicts, 2);
    EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM results"), 6);
    EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM conflicts"), 2);
  }
  EXPECT_EQ(
      query("all.sqlite", "SELECT count(*) FROM conflicts WHERE row ->> 'reply' = 'another reply'"),
      2);
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM scores WHERE reply = 'a reply'"), 4);
}

TEST_F(MergeTest, OtherDataUnderTheSameNameIsRefused) {
  const auto a = write("a.sqlite", 0, 2, 1, {test_result()});
  {
    auto store = ResultStore::open(file("b.sqlite"), Mode::kCreate).value();
    ASSERT_TRUE(store->begin_run(test_run()).ok());
    SampleRecord sample = test_sample("vt", 1);
    sample.text_hash = "other";
    const std::vector<ResultRecord> results = {test_result()};
    ASSERT_TRUE(store->write_sample(sample, results).ok());
  }
  EXPECT_THAT(message_of(merge({a, file("b.sqlite")}).status()),
              HasSubstr("1 sample under the same name with another text"));
  {
    auto store = ResultStore::open(file("c.sqlite"), Mode::kCreate).value();
    ASSERT_TRUE(store->begin_run(test_run()).ok());
    SampleRecord sample = test_sample("vt", 1);
    sample.prompt_hash = "other";
    const std::vector<ResultRecord> results = {test_result("h2o")};
    ASSERT_TRUE(store->write_sample(sample, results).ok());
  }
  EXPECT_THAT(message_of(merge({file("c.sqlite")}).status()), HasSubstr("another rendered prompt"));
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM methods"), 1);
}

TEST_F(MergeTest, BadSourcesAreNamedBeforeAnythingIsWritten) {
  const auto a = write("a.sqlite", 0, 1, 1, {test_result()});
  EXPECT_THAT(message_of(merge({a, file("missing.sqlite")}).status()), HasSubstr("no such file"));
  ASSERT_TRUE(write_file(file("text.sqlite"), std::string(300, 'x')).ok());
  EXPECT_THAT(message_of(merge({a, file("text.sqlite")}).status()),
              HasSubstr("text.sqlite: not an SQLite database"));
  EXPECT_THAT(message_of(merge_databases(std::vector{a}, a).status()),
              HasSubstr("both a source and the target"));
  EXPECT_FALSE(std::filesystem::exists(file("all.sqlite")));
}

TEST_F(MergeTest, ASourceThatOnlyClaimsToBeOursIsAnErrorAndLeavesTheTargetAlone) {
  const auto a = write("a.sqlite", 0, 1, 1, {test_result()});
  ASSERT_TRUE(merge({a}).ok());
  {
    auto db = Database::open(file("liar.sqlite"), Database::Mode::kCreate, std::chrono::seconds(1))
                  .value();
    ASSERT_TRUE(db->execute("CREATE TABLE results (id INTEGER); PRAGMA user_version = 1; "
                            "PRAGMA application_id = 1802923106")
                    .ok());
  }
  const absl::Status status = merge({file("liar.sqlite")}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM results"), 1);
  // Rows that point nowhere.
  const auto b = write("b.sqlite", 1, 2, 1, {test_result()});
  {
    auto db = Database::open(b, Database::Mode::kWrite, std::chrono::seconds(1)).value();
    ASSERT_TRUE(db->execute("PRAGMA foreign_keys = OFF; DELETE FROM methods").ok());
  }
  EXPECT_THAT(message_of(merge({b}).status()), HasSubstr("do not exist"));
  EXPECT_EQ(query("all.sqlite", "SELECT count(*) FROM results"), 1);
}

}  // namespace
}  // namespace kvlab
