// The reading commands, as programs, on a small database.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "tests/reports/documented_queries.h"
#include "tests/reports/hostile.h"
#include "tests/reports/synthetic_results.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ReadingCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto store = ResultStore::open(db_, ResultStore::Mode::kCreate);
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->begin_run(test_run()).ok());
    for (int64_t i = 0; i < 12; ++i) {
      std::vector<ResultRecord> results = {test_result("full", "full", 90),
                                           test_result("snapkv", "128", i < 3 ? 100 : 0),
                                           test_result("laq", "128", i < 9 ? 100 : 0)};
      results[2].method = make_setting("laq", {{"draft_tokens", 8}});
      ASSERT_TRUE((*store)->write_sample(test_sample("vt", i), results).ok());
    }
  }

  // Standard output of `kvlab ARGUMENTS`; fails the test on a non-zero exit.
  std::string run(const std::string& arguments) {
    const std::string out = (folder_.path() / "out.txt").string();
    const int status =
        std::system(fmt::format("'{}' {} > '{}' 2>&1", KVLAB_BINARY, arguments, out).c_str());
    const std::string text = read_file(out).value_or("");
    EXPECT_EQ(status, 0) << text;
    return text;
  }

  TemporaryFolder folder_;
  std::string db_ = (folder_.path() / "results.sqlite").string();
};

TEST_F(ReadingCommands, CompareShowsTheDifferenceAndTheSettingsThatDiffer) {
  const std::string text = run("compare '" + db_ + "' --baseline snapkv --candidate laq");
  // 9 of 12 against 3 of 12, scores 0 or 100: plus 50.
  EXPECT_THAT(text, AllOf(HasSubstr("method: snapkv -> laq"), HasSubstr("draft_tokens"),
                          HasSubstr("50.0")));
}

TEST_F(ReadingCommands, ReportsInEveryFormatNameTheMethods) {
  for (const char* format : {"text", "markdown", "csv", "latex", "html"}) {
    const std::string text = run(fmt::format("report '{}' --format {}", db_, format));
    EXPECT_THAT(text, AllOf(HasSubstr("snapkv"), HasSubstr("laq"), HasSubstr("75.0"))) << format;
  }
}

TEST_F(ReadingCommands, CompareShowsTheSamplesThatDifferMostWithBothReplies) {
  for (const char* format : {"text", "markdown"}) {
    const std::string text = run(fmt::format(
        "compare '{}' --baseline snapkv --candidate laq --differing 2 --format {}", db_, format));
    EXPECT_THAT(text, AllOf(HasSubstr("Where they differ most"), HasSubstr("ruler/vt/4096/3"),
                            HasSubstr("ruler/vt/4096/4"), Not(HasSubstr("ruler/vt/4096/5")),
                            HasSubstr("a reply"), HasSubstr("Settings that differ")))
        << format;
    // Equal settings are not listed.
    EXPECT_THAT(text, Not(HasSubstr("config_hash")));
  }
}

TEST_F(ReadingCommands, ShowPrintsEveryArmOfASampleAndItsKeptPositions) {
  const std::string db = (folder_.path() / "synthetic.sqlite").string();
  ASSERT_TRUE(write_synthetic_results(db, {.samples = 1, .tasks = 1, .lengths = 1}).ok());
  const std::string show = "show '" + db + "' --sample ruler/niah_single_1/2048/0";
  const std::string map = run(show);
  EXPECT_THAT(map, AllOf(HasSubstr("prompt 0 of niah_single_1"), HasSubstr("snapkv, budget 64"),
                         HasSubstr("laq, budget 256"), HasSubstr("a reply"),
                         HasSubstr("seconds: prefill 2.0480"), HasSubstr("layer  0 |")));
  const std::string positions = run(show + " --positions --method snapkv");
  EXPECT_THAT(positions, AllOf(HasSubstr("layer  7 head  1: 0-3"), Not(HasSubstr("laq"))));
}

TEST_F(ReadingCommands, HostileRepliesCannotReachTheTerminal) {
  const std::string db = (folder_.path() / "hostile.sqlite").string();
  {
    const auto store = ResultStore::open(db, ResultStore::Mode::kCreate).value();
    ASSERT_TRUE(store->begin_run(test_run()).ok());
    std::vector<ResultRecord> results = {test_result("snapkv"), test_result("laq", "128", 0)};
    for (ResultRecord& result : results) {
      result.reply = std::string(kHostile);
      result.metric = std::string(kHostile);
      result.stop_reason = std::string(kHostile);
    }
    results[1].method = make_setting("laq", {{"window", std::string(kHostile)}});
    SampleRecord sample = test_sample();
    sample.rendered_text = std::string(kHostile);
    sample.references = {std::string(kHostile)};
    ASSERT_TRUE(store->write_sample(sample, results).ok());
    sample = test_sample("vt", 1);
    results.resize(1);
    results[0].status = CellStatus::kFailed;
    results[0].reason = std::string(kHostile);
    ASSERT_TRUE(store->write_sample(sample, results).ok());
  }
  for (const std::string command : {"report", "show --sample ruler/vt/4096/0 --prompt",
                                    "compare --baseline snapkv --candidate laq"}) {
    const std::string text = run(command + " '" + db + "'");
    for (const char c : text) {
      EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n') << command;
    }
    EXPECT_THAT(text, AllOf(HasSubstr("\\x1b[31mred"), Not(HasSubstr("\u202e")))) << command;
  }
}

TEST_F(ReadingCommands, TheDocumentedQueriesAnswer) {
  const std::string db = (folder_.path() / "synthetic.sqlite").string();
  ASSERT_TRUE(write_synthetic_results(db, {}).ok());
  const auto store = ResultStore::open(db, ResultStore::Mode::kRead).value();
  const std::vector<std::string> queries = documented_queries();
  ASSERT_EQ(queries.size(), 3U);
  for (const std::string& query : queries) {
    auto rows = store->database().prepare(query);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_TRUE(rows->step().value()) << query;
  }
  // The first one gives the report's figure.
  auto means = store->database().prepare(queries[0]).value();
  ASSERT_TRUE(means.step().value());
  const std::string csv = run(
      "report '" + db + "' --format csv --rows method,budget,length --where task=niah_single_1");
  EXPECT_THAT(csv, HasSubstr("full,full,2048,niah_single_1"));
  EXPECT_EQ(means.text(0), "full");
  EXPECT_EQ(means.int64(2), 40);
}

TEST_F(ReadingCommands, ErrorsAreOneLineAndANonZeroExit) {
  for (const std::string& arguments : std::vector<std::string>{
           "report missing.sqlite", "report '" + db_ + "' --where metod=x",
           "compare '" + db_ + "' --baseline snapkv --candidate h2o",
           "show '" + db_ + "' --sample x", "report '" + db_ + "' --rows task"}) {
    const std::string out = (folder_.path() / "error.txt").string();
    const int status =
        std::system(fmt::format("'{}' {} > '{}' 2>&1", KVLAB_BINARY, arguments, out).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << arguments;
    const std::string text = read_file(out).value_or("");
    EXPECT_TRUE(text.starts_with("kvlab: ")) << text;
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  }
}

TEST_F(ReadingCommands, AFullDiskIsAnErrorOfEveryCommandThatPrints) {
  for (const std::string& command :
       {"report '" + db_ + "'", "show --sample ruler/vt/4096/0 '" + db_ + "'",
        std::string("list methods"), std::string("predict")}) {
    const std::string error = (folder_.path() / "error.txt").string();
    const int status =
        std::system(fmt::format("'{}' {} >/dev/full 2>'{}'", KVLAB_BINARY, command, error).c_str());
    EXPECT_EQ(WEXITSTATUS(status), 1) << command;
    EXPECT_THAT(read_file(error).value_or(""), HasSubstr("cannot write the output"));
  }
}

// Runs the program and gives what it says on either stream.
std::string said_by(const std::string& command, const std::filesystem::path& folder,
                    int expected_status) {
  const std::string out = (folder / "said.txt").string();
  const int status = std::system(fmt::format("{} >'{}' 2>&1", command, out).c_str());
  EXPECT_EQ(WEXITSTATUS(status), expected_status) << command;
  return read_file(out).value_or("");
}

TEST_F(ReadingCommands, AnUnknownCommandNamesThoseThereAre) {
  const std::string program = fmt::format("'{}' ", KVLAB_BINARY);
  EXPECT_THAT(said_by(program + "bogus", folder_.path(), 106), HasSubstr(" run report compare "));
  EXPECT_THAT(said_by(program + "list bogus", folder_.path(), 106),
              HasSubstr("benchmarks methods"));
}

TEST_F(ReadingCommands, AWrongEnvironmentVariableIsNamedWithItsChoices) {
  for (const auto& [setting, choices] : std::vector<std::pair<std::string, std::string>>{
           {"KVLAB_THREADS=two", "a number from 1 to 256"},
           {"KVLAB_THREADS=0", "a number from 1 to 256"},
           {"KVLAB_THREADS=257", "a number from 1 to 256"},
           {"KVLAB_CPU_LEVEL=avx521", "reference, portable"},
           {"KVLAB_THREAD_POOL=mine", "own or shared"}}) {
    EXPECT_THAT(
        said_by(fmt::format("{} '{}' list methods", setting, KVLAB_BINARY), folder_.path(), 1),
        AllOf(HasSubstr(setting + " is not allowed"), HasSubstr(choices)));
  }
  said_by(fmt::format("KVLAB_THREADS=2 KVLAB_CPU_LEVEL= '{}' list methods", KVLAB_BINARY),
          folder_.path(), 0);
}

}  // namespace
}  // namespace kvlab
