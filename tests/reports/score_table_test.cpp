// What tables of scores and comparisons say, and what they refuse to say.
#include "reports/score_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/status.h"
#include "reports/compare.h"
#include "reports/fields.h"
#include "reports/layouts.h"
#include "reports/writers.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ScoreTables : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = ResultStore::open(folder_.path() / "r.sqlite", ResultStore::Mode::kCreate).value();
    ASSERT_TRUE(store_->begin_run(test_run()).ok());
  }
  void write(const SampleRecord& sample, const std::vector<ResultRecord>& results) {
    const auto written = store_->write_sample(sample, results);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  static ResultRecord failed(const std::string& method, const std::string& budget,
                             CellStatus status = CellStatus::kFailed) {
    ResultRecord result = test_result(method, budget);
    result.status = status;
    result.reason = "out of memory";
    return result;
  }
  // Two tasks, four samples: full, snapkv and laq at 64 and 128.
  void write_small_sweep() {
    for (int64_t i = 0; i < 4; ++i) {
      for (const char* task : {"vt", "fwe"}) {
        write(test_sample(task, i),
              {test_result("full", "full", 100), test_result("laq", "128", 80),
               test_result("snapkv", "128", i < 2 ? 100 : 0), test_result("snapkv", "64", 20),
               test_result("laq", "64", 20)});
      }
    }
  }
  ScoreData data() { return load_scores(store_->database()).value(); }
  std::vector<Table> tables(const ScoreTableOptions& options = {}) {
    const auto made = score_tables(data(), options);
    EXPECT_TRUE(made.ok()) << made.status();
    return made.value_or(std::vector<Table>());
  }
  static std::vector<std::string> first_column(const Table& table) {
    std::vector<std::string> names;
    for (const TableRow& row : table.rows) {
      names.push_back(row.headers[0] + " " + (row.headers.size() > 1 ? row.headers[1] : ""));
    }
    return names;
  }
  static const TableRow& row_of(const Table& table, const std::string& name) {
    for (const TableRow& row : table.rows) {
      std::string all;
      for (const std::string& header : row.headers) {
        all += (all.empty() ? "" : " ") + header;
      }
      if (all == name) {
        return row;
      }
    }
    ADD_FAILURE() << "no row " << name;
    return table.rows.front();
  }

  TemporaryFolder folder_;
  std::unique_ptr<ResultStore> store_;
};

TEST_F(ScoreTables, TheFullCacheIsOnTopAndTheBestOfABudgetIsMarked) {
  write_small_sweep();
  const auto all = tables();
  ASSERT_EQ(all.size(), 1U);
  const Table& table = all[0];
  EXPECT_THAT(first_column(table),
              ElementsAre("full full", "laq 64", "snapkv 64", "laq 128", "snapkv 128"));
  ASSERT_EQ(table.columns.size(), 3U);
  EXPECT_EQ(table.columns[2].name, "mean");
  EXPECT_TRUE(row_of(table, "laq 128").cells[0].best);
  EXPECT_FALSE(row_of(table, "snapkv 128").cells[0].best);
  EXPECT_FALSE(row_of(table, "full full").cells[0].best);  // not a rival
  // Where all are equal none is best.
  EXPECT_FALSE(row_of(table, "laq 64").cells[0].best || row_of(table, "snapkv 64").cells[0].best);
  // 100, 100, 0, 0: mean 50, t(3) * 57.735 / 2 = 91.87.
  const TableCell& cell = row_of(table, "snapkv 128").cells[0];
  EXPECT_EQ(cell.text, "50.0 ± 91.9");
  EXPECT_EQ(cell.count, 4);
  EXPECT_NEAR(*cell.low, 50 - 91.869, 0.01);
}

TEST_F(ScoreTables, AMeanOverMissingCellsIsRefusedAndNeverBest) {
  write_small_sweep();
  // laq fails on one more sample that snapkv has.
  write(test_sample("vt", 4),
        {test_result("full", "full", 100), test_result("snapkv", "128", 0), failed("laq", "128")});
  const auto all = tables();
  const Table& table = all.at(0);
  const TableRow& laq = row_of(table, "laq 128");
  EXPECT_THAT(table.columns[0].name, "fwe");
  EXPECT_TRUE(laq.cells[0].value.has_value());
  EXPECT_THAT(laq.cells[1].text, HasSubstr("(4/5)"));
  EXPECT_FALSE(laq.cells[1].best);
  EXPECT_EQ(laq.cells[2].text, "–");
  EXPECT_FALSE(laq.cells[2].value.has_value());
  EXPECT_THAT(write_text(table), AllOf(HasSubstr("would not be comparable"),
                                       HasSubstr("failed: 1 cell of laq: out of memory")));
  // On equal samples there is a mean again.
  ScoreTableOptions equal;
  equal.equal_samples = true;
  const auto comparable = tables(equal);
  EXPECT_EQ(row_of(comparable.at(0), "laq 128").cells[2].text, "80.0 ± 0.0");
}

TEST_F(ScoreTables, ProtocolsModelsAndDataSetsAreNeverMixed) {
  write(test_sample("vt", 0), {test_result("snapkv", "128", 0)});
  SampleRecord other = test_sample("vt", 0);
  other.protocol = make_setting("kvpress", {{"template", "none"}});
  write(other, {test_result("snapkv", "128", 100)});
  SampleRecord model = test_sample("vt", 0);
  model.model = make_setting("tiny", {{"config_hash", "c"}, {"dtype", "float32"}});
  write(model, {test_result("snapkv", "128", 100)});
  SampleRecord dataset = test_sample("vt", 0);
  dataset.dataset = "ruler-test-2";
  write(dataset, {test_result("snapkv", "128", 100)});
  const auto all = tables();
  ASSERT_EQ(all.size(), 4U);
  std::string titles;
  for (const Table& table : all) {
    titles += table.title + "\n";
    EXPECT_EQ(table.rows.size(), 1U);
    EXPECT_EQ(table.rows[0].cells[0].count, 1);
  }
  // Only what differs tells the models apart.
  EXPECT_THAT(titles, AllOf(HasSubstr("tiny (dtype=bfloat16)"), HasSubstr("tiny (dtype=float32)"),
                            HasSubstr("protocol kvpress"), Not(HasSubstr("config_hash"))));
}

TEST_F(ScoreTables, MethodsWithOneLabelAreToldApartByWhatDiffersOnly) {
  std::vector<ResultRecord> results = {test_result(), test_result()};
  results[0].method = make_setting("snapkv", {{"window", 16}, {"kernel", 7}});
  results[1].method = make_setting("snapkv", {{"window", 32}, {"kernel", 7}});
  write(test_sample(), results);
  EXPECT_THAT(first_column(tables().at(0)),
              ElementsAre("snapkv (window=16) 128", "snapkv (window=32) 128"));
}

TEST_F(ScoreTables, RowsAndColumnsCanBeAnyFields) {
  write_small_sweep();
  write(test_sample("vt", 0, 8192), {test_result("full", "full", 90), test_result("laq", "64", 10),
                                     test_result("snapkv", "64", 30)});
  ScoreTableOptions by_length;
  by_length.rows = {Field::kMethod};
  by_length.columns = Field::kLength;
  const auto all = tables(by_length);
  ASSERT_EQ(all.size(), 2U);  // one for each budget, the full cache in both
  for (const Table& table : all) {
    EXPECT_EQ(table.rows[0].headers[0], "full");
  }
  ScoreTableOptions by_task_row;
  by_task_row.rows = {Field::kTask};
  by_task_row.columns = Field::kMethod;
  EXPECT_EQ(tables(by_task_row).size(), 3U);  // 4096 at two budgets, 8192 at one
  ScoreTableOptions twice;
  twice.rows = {Field::kTask};
  EXPECT_THAT(message_of(score_tables(data(), twice).status()), HasSubstr("twice"));
}

TEST_F(ScoreTables, FiltersSayWhatThereIs) {
  write_small_sweep();
  ScoreData some = data();
  ASSERT_TRUE(
      apply_filters({parse_table_filter("budget<=64").value(),
                     parse_table_filter("task=vt").value(), parse_table_filter("index<2").value()},
                    some)
          .ok());
  EXPECT_EQ(some.cells.size(), 2U * 3U);  // the full cache passes every filter on the budget
  EXPECT_THAT(message_of(apply_filters({parse_table_filter("method=snapkw").value()}, some)),
              AllOf(HasSubstr("snapkw"), HasSubstr("laq")));
  EXPECT_THAT(message_of(parse_table_filter("metod=snapkv").status()),
              HasSubstr("fields: benchmark"));
}

TEST_F(ScoreTables, LayoutsNameTheirBenchmarkAndEachOther) {
  write_small_sweep();
  const Database& db = store_->database();
  const auto by_length = layout_tables("ruler-by-length", db, data(), {});
  ASSERT_TRUE(by_length.ok()) << by_length.status();
  EXPECT_EQ(by_length->size(), 2U);
  EXPECT_EQ((*by_length)[0].columns[0].name, "4096");
  EXPECT_THAT(message_of(layout_tables("longbench-by-budget", db, data(), {}).status()),
              HasSubstr("no results of longbench"));
  EXPECT_THAT(message_of(layout_tables("paper", db, data(), {}).status()),
              HasSubstr("ruler-by-length, longbench-by-budget, efficiency"));
  const auto costs = layout_tables("efficiency", db, data(), {});
  ASSERT_TRUE(costs.ok()) << costs.status();
  EXPECT_THAT(write_text(costs->at(0)), AllOf(HasSubstr("eviction"), HasSubstr("prefill")));
}

TEST_F(ScoreTables, RepliesWithoutADecodingStepDoNotCountAsFastOnes) {
  for (int64_t i = 0; i < 3; ++i) {
    ResultRecord laq = test_result("laq");
    laq.timings.decode_s = 0.5;  // 10 ms a step
    laq.timings.decode_steps = 50;
    ResultRecord snapkv = test_result();
    for (ResultRecord* of_one_token : {&laq, &snapkv}) {
      if (i < 2 || of_one_token == &snapkv) {
        of_one_token->timings.decode_s = 0;
        of_one_token->timings.decode_steps = 0;
      }
    }
    write(test_sample("vt", i), {laq, snapkv});
  }
  const Table cost = layout_tables("efficiency", store_->database(), data(), {}).value().at(0);
  const auto step = [&](const std::string& row) {
    for (size_t i = 0; i < cost.columns.size(); ++i) {
      if (cost.columns[i].name == "decode step") {
        return row_of(cost, row).cells[i].text;
      }
    }
    return std::string("no such column");
  };
  EXPECT_EQ(step("laq 128 3"), "10.00");
  EXPECT_EQ(step("snapkv 128 3"), kMissing);
}

// Comparisons.

CompareOptions snapkv_to_laq() {
  CompareOptions options;
  options.baseline = "snapkv";
  options.candidate = "laq";
  return options;
}

TEST_F(ScoreTables, ComparisonsArePairedAndTheFullCacheStandsBesideEveryBudget) {
  write_small_sweep();
  const auto made = compare_methods(data(), snapkv_to_laq());
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 2U);  // budgets 64 and 128
  const Table& at_128 = (*made)[1].table;
  ASSERT_EQ(at_128.rows.size(), 3U);
  // Differences are -20, -20, 80, 80.
  const TableRow& vt = row_of(at_128, "vt");
  EXPECT_EQ(*vt.cells[0].value, 4);
  EXPECT_DOUBLE_EQ(*vt.cells[1].value, 50);
  EXPECT_DOUBLE_EQ(*vt.cells[2].value, 80);
  EXPECT_DOUBLE_EQ(*vt.cells[3].value, 30);
  EXPECT_EQ(vt.cells[4].text, "2/0/2");
  EXPECT_EQ(row_of(at_128, "mean of 2 tasks").cells[4].text, "4/0/4");
  EXPECT_EQ(*row_of((*made)[0].table, "vt").cells[5].value, 1);  // all ties: p is 1
  // The samples that differ most come first, and the seed makes the interval repeat.
  ASSERT_EQ((*made)[1].samples.size(), 3U);
  EXPECT_EQ(std::abs((*made)[1].samples[0].candidate_score - (*made)[1].samples[0].baseline_score),
            80);
  const auto again = compare_methods(data(), snapkv_to_laq());
  EXPECT_EQ(write_text((*made)[1].table), write_text((*again)[1].table));

  CompareOptions against_full = snapkv_to_laq();
  against_full.baseline = "full";
  EXPECT_EQ(compare_methods(data(), against_full)->size(), 2U);
}

TEST_F(ScoreTables, ComparisonsLeaveOutAndSaySoAndRefuseAMeanWithoutATask) {
  write_small_sweep();
  write(test_sample("vt", 4), {test_result("snapkv", "128", 0), failed("laq", "128")});
  write(test_sample("vt", 5), {test_result("snapkv", "128", 0)});  // laq never ran
  const auto some = compare_methods(data(), snapkv_to_laq());
  ASSERT_TRUE(some.ok()) << some.status();
  const std::string text = write_text((*some)[1].table);
  EXPECT_THAT(text, HasSubstr("Left out: 2 samples"));
  EXPECT_EQ(*row_of((*some)[1].table, "vt").cells[0].value, 4);

  write(test_sample("cwe", 0), {test_result("snapkv", "128", 0), failed("laq", "128")});
  const auto none = compare_methods(data(), snapkv_to_laq());
  ASSERT_TRUE(none.ok()) << none.status();
  const Table& table = (*none)[1].table;
  EXPECT_FALSE(row_of(table, "cwe").cells[3].value.has_value());
  EXPECT_FALSE(row_of(table, "mean of 3 tasks").cells[3].value.has_value());
  EXPECT_THAT(write_text(table), HasSubstr("would not be comparable"));
  EXPECT_TRUE(row_of((*none)[0].table, "mean of 2 tasks").cells[3].value.has_value());
}

TEST_F(ScoreTables, AgainstTheFullCacheAMeanIsRefusedToWhereTheMethodLacksATask) {
  write_small_sweep();
  write(test_sample("cwe", 0), {test_result("full", "full", 100), test_result("laq", "64", 50)});
  CompareOptions options = snapkv_to_laq();
  options.baseline = "full";
  const auto made = compare_methods(data(), options);
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 2U);
  EXPECT_TRUE(row_of((*made)[0].table, "mean of 3 tasks").cells[3].value.has_value());
  const Table& at_128 = (*made)[1].table;
  EXPECT_FALSE(row_of(at_128, "cwe").cells[3].value.has_value());
  EXPECT_FALSE(row_of(at_128, "mean of 3 tasks").cells[3].value.has_value());
}

TEST_F(ScoreTables, ComparisonsDoNotDependOnTheOrderThatRowsWereStoredIn) {
  const auto text_of = [&](const std::string& name, const std::vector<int64_t>& order) {
    store_ = ResultStore::open(folder_.path() / name, ResultStore::Mode::kCreate).value();
    EXPECT_TRUE(store_->begin_run(test_run()).ok());
    for (const int64_t i : order) {
      for (const char* task : {"vt", "fwe"}) {
        write(test_sample(task, i), {test_result("snapkv", "128", static_cast<double>(i * i % 7)),
                                     test_result("laq", "128", static_cast<double>(i * 13 % 11))});
      }
    }
    const auto made = compare_methods(data(), snapkv_to_laq()).value();
    std::string text = write_text(made[0].table);
    for (const DifferingSample& sample : made[0].samples) {
      text += "\n" + sample.sample;
    }
    return text;
  };
  EXPECT_EQ(text_of("a.sqlite", {0, 1, 2, 3, 4, 5, 6}), text_of("b.sqlite", {5, 0, 6, 3, 1, 4, 2}));
}

TEST_F(ScoreTables, OneSampleHasNoIntervalAndEqualOnesNoDetectableDifference) {
  write(test_sample("vt", 0), {test_result("snapkv", "128", 0), test_result("laq", "128", 50)});
  const Table one = compare_methods(data(), snapkv_to_laq()).value()[0].table;
  EXPECT_EQ(row_of(one, "vt").cells[3].text, "+50.0");
  EXPECT_FALSE(row_of(one, "vt").cells[3].low.has_value());

  write(test_sample("vt", 1), {test_result("snapkv", "128", 0), test_result("laq", "128", 50)});
  const Table equal = compare_methods(data(), snapkv_to_laq()).value()[0].table;
  EXPECT_EQ(row_of(equal, "vt").cells[3].text, "+50.0 [+50.0, +50.0]");
  EXPECT_FALSE(row_of(equal, "vt").cells[7].value.has_value());
}

TEST_F(ScoreTables, ComparisonsRefuseToShowFewerThanNoSamples) {
  write_small_sweep();
  CompareOptions options = snapkv_to_laq();
  options.examples = -1;
  EXPECT_THAT(message_of(compare_methods(data(), options).status()), HasSubstr("0 or more"));
  options.examples = 0;
  const auto none = compare_methods(data(), options);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_TRUE(none->front().samples.empty());
}

TEST_F(ScoreTables, ComparisonsNeverMixProtocols) {
  write_small_sweep();
  SampleRecord other = test_sample("vt", 0);
  other.protocol = make_setting("kvpress", {{"template", "none"}});
  write(other, {test_result("laq", "128", 0)});
  const auto made = compare_methods(data(), snapkv_to_laq());
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ(made->size(), 2U);  // the other protocol has laq only: nothing to compare
  EXPECT_EQ(*row_of((*made)[1].table, "vt").cells[0].value, 4);
}

TEST_F(ScoreTables, ComparisonsShowTheSettingsThatDifferAndNoOthers) {
  std::vector<ResultRecord> results = {test_result(), test_result("laq")};
  results[0].method = make_setting("snapkv", {{"window", 32}, {"kernel", 7}, {"pool", "max"}});
  results[1].method = make_setting("laq", {{"window", 16}, {"kernel", 7}, {"draft_tokens", 8}});
  write(test_sample(), results);
  EXPECT_THAT(differing_settings(data(), snapkv_to_laq()),
              ElementsAre("method: snapkv -> laq", "draft_tokens: unset -> 8",
                          "pool: \"max\" -> unset", "window: 32 -> 16"));
}

TEST_F(ScoreTables, AmbiguousAndUnknownMethodsAreNamed) {
  std::vector<ResultRecord> results = {test_result(), test_result(), test_result("laq")};
  results[1].method = make_setting("snapkv", {{"window", 16}});
  write(test_sample(), results);
  EXPECT_THAT(message_of(compare_methods(data(), snapkv_to_laq()).status()),
              AllOf(HasSubstr("stands for several"), HasSubstr("snapkv (window=16)")));
  CompareOptions unknown = snapkv_to_laq();
  unknown.baseline = "h2o";
  EXPECT_THAT(message_of(compare_methods(data(), unknown).status()), HasSubstr("there are:"));
  CompareOptions exact = snapkv_to_laq();
  exact.baseline = "snapkv (window=16)";
  EXPECT_TRUE(compare_methods(data(), exact).ok());
}

}  // namespace
}  // namespace kvlab
