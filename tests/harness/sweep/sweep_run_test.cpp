// Whole sweeps through the program on the default model: what a user relies on.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "datasets/training/seeded_random.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status.h"
#include "results/sqlite.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

class SweepRun : public ::testing::Test {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    dir_ = std::filesystem::path(::testing::TempDir()) /
           ("kvlab_sweep_run_" + std::to_string(::getpid()) +
            ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(dir_);
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
  void TearDown() override { std::filesystem::remove_all(dir_); }

  // Starts `kvlab run`; output goes to a file beside the database.
  pid_t start(const Json& sweep, const std::string& db) {
    const std::string file = (dir_ / (db + ".json")).string();
    EXPECT_TRUE(write_file(file, sweep.dump()).ok());
    const std::string database = (dir_ / db).string();
    const std::string log = database + ".log";
    const pid_t pid = ::fork();
    if (pid == 0) {
      (void)!std::freopen(log.c_str(), "w", stderr);
      ::execl(KVLAB_BINARY, KVLAB_BINARY, "run", file.c_str(), "--db", database.c_str(), nullptr);
      ::_exit(127);
    }
    return pid;
  }
  static int wait_for(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int run(const Json& sweep, const std::string& db) { return wait_for(start(sweep, db)); }
  std::string log(const std::string& db) { return read_file(dir_ / (db + ".log")).value_or(""); }

  // Reply token for token by sample, method label and budget; and no key may stand twice.
  std::map<std::string, std::string> replies(const std::string& db) {
    std::map<std::string, std::string> found;
    const auto database = Database::open(dir_ / db, Database::Mode::kRead, std::chrono::seconds(5));
    EXPECT_TRUE(database.ok()) << database.status();
    auto rows = (*database)->prepare(
        "SELECT sample || ' ' || label || ' ' || budget, score || ' ' || new_tokens || ' ' || "
        "kept_total || ' ' || reply FROM scores");
    EXPECT_TRUE(rows.ok()) << rows.status();
    while (rows->step().value()) {
      EXPECT_TRUE(found.emplace(rows->text(0), rows->text(1)).second) << rows->text(0);
    }
    return found;
  }

  std::filesystem::path dir_;
  Json sweep_;
};

TEST_F(SweepRun, KilledRunsGoOnToTheTableOfAnUndisturbedOne) {
  ASSERT_EQ(run(sweep_, "whole.sqlite"), 0) << log("whole.sqlite");
  const auto whole = replies("whole.sqlite");
  EXPECT_EQ(whole.size(), 6U * 7U);
  SeededRandom random(11);
  int killed = 0;
  for (int i = 0; i < 6; ++i) {
    const pid_t pid = start(sweep_, "killed.sqlite");
    std::this_thread::sleep_for(std::chrono::milliseconds(random.between(200, 5000)));
    ::kill(pid, SIGKILL);
    killed += wait_for(pid) == -SIGKILL ? 1 : 0;
  }
  EXPECT_GT(killed, 0);
  ASSERT_EQ(run(sweep_, "killed.sqlite"), 0) << log("killed.sqlite");
  EXPECT_EQ(replies("killed.sqlite"), whole);
  ASSERT_EQ(run(sweep_, "killed.sqlite"), 0);  // nothing is left to do, nothing is doubled
  EXPECT_EQ(replies("killed.sqlite"), whole);
}

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
  EXPECT_FALSE(std::filesystem::exists(dir_ / "a.sqlite"));
}

}  // namespace
}  // namespace kvlab
