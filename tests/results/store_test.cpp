#include "results/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "results/packing.h"
#include "results/schema.h"
#include "results/score_data.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<ResultStore> open_ok(const std::filesystem::path& path,
                                     ResultStore::Mode mode = ResultStore::Mode::kCreate) {
  auto store = ResultStore::open(path, mode);
  EXPECT_TRUE(store.ok()) << store.status();
  return std::move(store).value();
}

int64_t count(const ResultStore& store, const std::string& table) {
  return store.database().query_int("SELECT count(*) FROM " + table).value();
}

class StoreTest : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "results.sqlite";
};

TEST_F(StoreTest, EveryFieldComesBackThroughTheViews) {
  auto store = open_ok(path_);
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  SampleRecord sample = test_sample();
  sample.rendered_text = "the prompt";
  ResultRecord result = test_result();
  result.selection = Selection{.prompt_len = 10, .kept = {{{1, 2}, {0, 9}}}};
  ResultRecord failed = test_result("h2o");
  failed.status = CellStatus::kFailed;
  failed.reason = "out of memory";
  const std::vector<ResultRecord> results = {result, failed};
  EXPECT_EQ(store->write_sample(sample, results).value(), 2);
  ASSERT_TRUE(store->finish_run("done").ok());

  auto row = store->database()
                 .prepare(
                     "SELECT model, dtype, benchmark, dataset, task, length, protocol, method, "
                     "params, budget, budget_entries, question_aware, sample, score, metric, "
                     "reply, stop_reason, prompt_tokens, new_tokens, kept_total FROM scores")
                 .value();
  ASSERT_TRUE(row.step().value());
  EXPECT_EQ(row.text(0), "tiny");
  EXPECT_EQ(row.text(1), "bfloat16");
  EXPECT_EQ(row.text(2), "ruler");
  EXPECT_EQ(row.text(3), "ruler-test-1");
  EXPECT_EQ(row.text(4), "vt");
  EXPECT_EQ(row.int64(5), 4096);
  EXPECT_EQ(row.text(6), "ruler-official");
  EXPECT_EQ(row.text(7), "snapkv");
  EXPECT_EQ(row.text(8), "{\"window\":32}");
  EXPECT_EQ(row.text(9), "128");
  EXPECT_EQ(row.int64(10), 128);
  EXPECT_EQ(row.int64(11), 1);
  EXPECT_EQ(row.text(12), "ruler/vt/4096/0");
  EXPECT_EQ(row.real(13), 50);
  EXPECT_EQ(row.text(14), "string match");
  EXPECT_EQ(row.text(15), "a reply");
  EXPECT_EQ(row.text(16), "stop_token");
  EXPECT_EQ(row.int64(17), 3996);
  EXPECT_EQ(row.int64(18), 3);
  EXPECT_EQ(row.int64(19), 128 * 90);
  EXPECT_FALSE(row.step().value());

  auto timing = store->database().prepare("SELECT eviction_s, decode_step_s FROM timings").value();
  ASSERT_TRUE(timing.step().value());
  EXPECT_NEAR(timing.real(0), 0.15, 1e-12);
  EXPECT_NEAR(timing.real(1), 0.5, 1e-12);

  auto failure = store->database().prepare("SELECT method, status, reason FROM failures").value();
  ASSERT_TRUE(failure.step().value());
  EXPECT_EQ(failure.text(0), "h2o");
  EXPECT_EQ(failure.text(1), "failed");
  EXPECT_EQ(failure.text(2), "out of memory");

  auto bulk = store->database()
                  .prepare(
                      "SELECT token_ids, kept, (SELECT text FROM prompt_texts) FROM replies "
                      "JOIN selections USING (result_id)")
                  .value();
  ASSERT_TRUE(bulk.step().value());
  EXPECT_EQ(*unpack_token_ids(bulk.blob(0)), (std::vector<int32_t>{1, 300, 70000}));
  EXPECT_EQ(unpack_selection(bulk.blob(1))->kept, result.selection->kept);
  EXPECT_EQ(bulk.text(2), "the prompt");

  auto run = store->database().prepare("SELECT finished IS NOT NULL, outcome FROM runs").value();
  ASSERT_TRUE(run.step().value());
  EXPECT_EQ(run.int64(0), 1);
  EXPECT_EQ(run.text(1), "done");
}

TEST(CellStatus, ComesBackFromItsText) {
  for (const CellStatus status : {CellStatus::kOk, CellStatus::kFailed, CellStatus::kSkipped}) {
    EXPECT_EQ(parse_cell_status(cell_status_text(status)), status);
  }
}

TEST_F(StoreTest, NothingIsStoredTwiceAndAFailedCellIsReplaced) {
  auto store = open_ok(path_);
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  const SampleRecord sample = test_sample();
  ResultRecord failed = test_result("h2o");
  failed.status = CellStatus::kFailed;
  failed.reason = "out of memory";
  std::vector<ResultRecord> results = {test_result("snapkv", "128", 40), failed};
  EXPECT_EQ(store->write_sample(sample, results).value(), 2);

  const std::string ok_key = cell_key(sample, results[0]);
  const std::string failed_key = cell_key(sample, results[1]);
  EXPECT_TRUE(store->contains(failed_key).value());
  EXPECT_FALSE(store->contains(failed_key, /*retry_failed=*/true).value());
  EXPECT_EQ(store->stored_keys()->size(), 2u);
  EXPECT_EQ(store->stored_keys(/*retry_failed=*/true)->size(), 1u);

  store = open_ok(path_);
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  results = {test_result("snapkv", "128", 99), test_result("h2o", "128", 70)};
  EXPECT_EQ(store->write_sample(sample, results).value(), 1);
  EXPECT_EQ(count(*store, "results"), 2);
  EXPECT_EQ(count(*store, "replies"), 2);
  EXPECT_EQ(store->database().query_int("SELECT score FROM scores WHERE method = 'snapkv'").value(),
            40);
  EXPECT_EQ(store->database().query_int("SELECT score FROM scores WHERE method = 'h2o'").value(),
            70);
  EXPECT_TRUE(store->contains(ok_key, true).value());
}

TEST_F(StoreTest, KeysTellEveryPartOfACellApart) {
  const SampleRecord sample = test_sample();
  const ResultRecord result = test_result();
  absl::flat_hash_set<std::string> keys = {cell_key(sample, result)};
  const auto differs = [&](const SampleRecord& s, const ResultRecord& r) {
    EXPECT_TRUE(keys.insert(cell_key(s, r)).second);
  };
  SampleRecord other = sample;
  other.model = make_setting("tiny", {{"config_hash", "c"}, {"dtype", "float32"}});
  differs(other, result);
  other = sample;
  other.protocol = make_setting("kvpress", sample.protocol.json);
  differs(other, result);
  other = sample;
  other.dataset = "ruler-test-2";
  differs(other, result);
  other = sample;
  other.sample_key = "ruler/vt/4096/1";
  differs(other, result);
  ResultRecord cell = result;
  cell.method = make_setting("snapkv", {{"window", 16}});
  differs(sample, cell);
  cell = result;
  cell.budget = "256";
  differs(sample, cell);
  cell = result;
  cell.question_aware = false;
  differs(sample, cell);
  // What is measured, and how a method is called, is no part of the key.
  cell = result;
  cell.score = 1;
  cell.method.label = "SnapKV (ours)";
  EXPECT_EQ(cell_key(sample, cell), cell_key(sample, result));
}

TEST_F(StoreTest, ChangedDataUnderTheSameNameIsRefusedWhole) {
  auto store = open_ok(path_);
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  const std::vector<ResultRecord> results = {test_result()};
  ASSERT_TRUE(store->write_sample(test_sample(), results).ok());
  const std::vector<ResultRecord> more = {test_result("h2o")};
  SampleRecord changed = test_sample();
  changed.text_hash = "other";
  EXPECT_THAT(message_of(store->write_sample(changed, more).status()), HasSubstr("another text"));
  changed = test_sample();
  changed.references = {"three"};
  EXPECT_THAT(message_of(store->write_sample(changed, more).status()),
              HasSubstr("other references"));
  changed = test_sample();
  changed.prompt_hash = "other";
  EXPECT_THAT(message_of(store->write_sample(changed, more).status()),
              HasSubstr("another rendered prompt"));
  EXPECT_EQ(count(*store, "results"), 1);
  EXPECT_EQ(count(*store, "methods"), 1);
}

TEST_F(StoreTest, ABadCellLeavesNothingOfItsSample) {
  auto store = open_ok(path_);
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  const std::vector<ResultRecord> results = {
      test_result(), test_result("h2o", "128", std::numeric_limits<double>::quiet_NaN())};
  EXPECT_THAT(message_of(store->write_sample(test_sample(), results).status()),
              HasSubstr("not a finite number"));
  EXPECT_EQ(count(*store, "samples"), 0);
  EXPECT_EQ(count(*store, "results"), 0);
}

TEST_F(StoreTest, HostileTextIsKept) {
  auto store = open_ok(path_);
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  SampleRecord sample = test_sample();
  sample.sample_key = "'; DROP TABLE results; --";
  ResultRecord result = test_result();
  result.reply = std::string("nul \0 and \x01 and \xff\xfe", 19);
  const std::vector<ResultRecord> results = {result};
  ASSERT_TRUE(store->write_sample(sample, results).ok());
  auto row = store->database().prepare("SELECT reply, sample FROM scores").value();
  ASSERT_TRUE(row.step().value());
  EXPECT_EQ(row.text(0), std::string("nul \0 and \x01 and \xef\xbf\xbd\xef\xbf\xbd", 23));
  EXPECT_EQ(row.text(1), sample.sample_key);
}

TEST_F(StoreTest, AReaderSeesStoredSamplesWhileARunWrites) {
  auto writer = open_ok(path_);
  ASSERT_TRUE(writer->begin_run(test_run()).ok());
  const std::vector<ResultRecord> results = {test_result()};
  ASSERT_TRUE(writer->write_sample(test_sample("vt", 0), results).ok());
  auto reader = open_ok(path_, ResultStore::Mode::kRead);
  auto open_query = reader->database().prepare("SELECT * FROM results").value();
  ASSERT_TRUE(open_query.step().value());  // holds a read lock
  ASSERT_TRUE(writer->write_sample(test_sample("vt", 1), results).ok());
  open_query.reset();
  EXPECT_EQ(count(*reader, "results"), 2);
}

TEST_F(StoreTest, MigrationsRunInOrderAllOrNothing) {
  open_ok(path_);
  auto db = Database::open(path_, Database::Mode::kWrite, std::chrono::seconds(1)).value();
  const int newest = migrations().back().version;
  const std::vector<Migration> now(migrations().begin(), migrations().end());
  std::vector<Migration> broken = now;
  broken.push_back({newest + 1, "CREATE TABLE extra (a INTEGER) STRICT"});
  broken.push_back({newest + 2, "CREATE TABLE extra (a INTEGER) STRICT"});
  EXPECT_THAT(message_of(migrate(*db, broken)),
              HasSubstr(fmt::format("upgrade to schema {}", newest + 2)));
  EXPECT_EQ(db->query_int("PRAGMA user_version").value(), newest);
  EXPECT_EQ(db->query_int("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'").value(), 0);
  std::vector<Migration> good = now;
  good.push_back({newest + 1, "CREATE TABLE extra (a INTEGER) STRICT"});
  good.push_back({newest + 2, "ALTER TABLE extra ADD COLUMN b TEXT"});
  EXPECT_TRUE(check_schema(*db, good).ok());  // an older file can be read
  EXPECT_TRUE(migrate(*db, good).ok());
  EXPECT_EQ(db->query_int("PRAGMA user_version").value(), newest + 2);
  EXPECT_TRUE(check_schema(*db, good).ok());
  // This program now meets a database of a newer one.
  for (const auto mode :
       {ResultStore::Mode::kRead, ResultStore::Mode::kWrite, ResultStore::Mode::kCreate}) {
    EXPECT_THAT(message_of(ResultStore::open(path_, mode).status()), HasSubstr("newer kvlab"));
  }
}

// tests/results/schema_1.sql is a small sweep's file as a program with schema 1 wrote it.
TEST_F(StoreTest, AFileOfTheFirstSchemaCanBeReadAndIsUpgradedWithAllItsRows) {
  {
    const std::string dump =
        read_file(std::string(KVLAB_TEST_DIR) + "/results/schema_1.sql").value();
    auto db = Database::open(path_, Database::Mode::kCreate, std::chrono::seconds(1)).value();
    ASSERT_TRUE(db->execute(dump).ok());
    ASSERT_EQ(db->query_int("PRAGMA user_version").value(), 1);
  }
  const auto everything = [](ResultStore& store) {
    std::string all;
    for (const char* table :
         {"runs", "models", "protocols", "methods", "samples", "prompts", "prompt_texts", "results",
          "replies", "selections", "scores", "timings", "failures"}) {
      auto rows =
          store.database().prepare(fmt::format("SELECT * FROM {} ORDER BY 1", table)).value();
      while (rows.step().value()) {
        all += fmt::format("{} {} {} {}\n", table, rows.text(0), rows.text(1), rows.text(2));
      }
    }
    return all;
  };
  const std::string before = read_file(path_).value();
  std::string rows;
  {
    auto reader = open_ok(path_, ResultStore::Mode::kRead);
    rows = everything(*reader);
    EXPECT_EQ(load_scores(reader->database()).value().cells.size(), 8U);
  }
  EXPECT_EQ(read_file(path_).value(), before);  // reading changes nothing
  auto writer = open_ok(path_, ResultStore::Mode::kWrite);
  EXPECT_EQ(writer->database().query_int("PRAGMA user_version").value(),
            migrations().back().version);
  EXPECT_EQ(everything(*writer), rows);
  // And it goes on: a stored cell is known by its key, a new one is added.
  ASSERT_TRUE(writer->begin_run(test_run()).ok());
  EXPECT_EQ(writer->stored_keys().value().size(), 8U);
  const std::vector<ResultRecord> results = {test_result("h2o")};
  EXPECT_EQ(writer->write_sample(test_sample("cwe"), results).value(), 1);
}

}  // namespace
}  // namespace kvlab
