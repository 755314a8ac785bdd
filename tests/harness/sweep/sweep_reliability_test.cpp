// What may happen to a sweep in a long night: kills, a full disk, locks, failed cells, a time
// limit, many processes. On a random model of two layers, so that a whole sweep takes a second or
// two.
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "results/sqlite.h"
#include "tests/harness/sweep/sweep_process.h"
#include "tests/support/shared_data.h"
#include "tests/support/tiny_model.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr int64_t kSamples = 4, kTasks = 2, kArms = 9;
constexpr int kKills = 50;

class SweepReliability : public SweepProcessTest {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    if (reference_ == nullptr) {
      reference_ = std::make_unique<TemporaryFolder>();
      const absl::Status made = make_tiny_model(model, reference_->path() / "tiny");
      ASSERT_TRUE(made.ok()) << made;
    }
    sweep_ = {{"model", (reference_->path() / "tiny").string()},
              {"benchmarks",
               {{{"name", "ruler"},
                 {"tasks", {"vt", "fwe"}},
                 {"lengths", {1024}},
                 {"samples", kSamples},
                 {"seed", 7},
                 {"template", "model"}}}},
              {"methods", {"full", "snapkv", "streaming_llm", "tova", "laq"}},
              {"budgets", {32, 64}},
              {"store", {{"prompts", true}, {"selections", true}}}};
    const std::filesystem::path kept = reference_->path() / "whole.sqlite";
    if (!std::filesystem::exists(kept)) {
      const auto start = Clock::now();
      ASSERT_EQ(run(sweep_, "whole.sqlite"), 0) << log("whole.sqlite");
      whole_time_ = Clock::now() - start;
      whole_ = replies("whole.sqlite");
      ASSERT_EQ(whole_.size(), static_cast<size_t>(kSamples * kTasks * kArms));
      whole_report_ = report("whole.sqlite");
      std::filesystem::copy_file(file("whole.sqlite"), kept);
    } else {
      std::filesystem::copy_file(kept, file("whole.sqlite"));
      ASSERT_TRUE(write_file(file("whole.sqlite.json"), sweep_.dump()).ok());
    }
  }
  static void TearDownTestSuite() { reference_.reset(); }

  // Whatever is stored of a sample is all of it.
  void expect_no_half_samples(const std::string& db) {
    const int64_t samples = query(db, "SELECT count(*) FROM prompts");
    EXPECT_EQ(query(db, "SELECT count(*) FROM results"), samples * kArms);
    EXPECT_EQ(query(db, "SELECT count(*) FROM replies"), samples * kArms);
    EXPECT_EQ(query(db, "SELECT count(*) FROM selections"), samples * kArms);
    EXPECT_EQ(query(db, "SELECT count(*) FROM prompt_texts"), samples);
    EXPECT_EQ(query(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
  }
  std::string report(const std::string& db) {
    return output_of("report '" + file(db).string() + "'");
  }

  Json sweep_;
  // An undisturbed run, made once.
  static inline std::unique_ptr<TemporaryFolder> reference_;
  static inline std::map<std::string, std::string> whole_;
  static inline std::string whole_report_;
  static inline Clock::duration whole_time_{};
};

TEST_F(SweepReliability, FiftyKillsAtRandomMomentsLoseAndDoubleNothing) {
  std::mt19937 random(11);
  int kills = 0, finished = 0;
  int64_t stored_before = 0;
  const auto whole_us = std::chrono::duration_cast<std::chrono::microseconds>(whole_time_).count();
  while (kills < kKills) {
    const pid_t process = start(sweep_, "killed.sqlite");
    // From the first instruction to the last row.
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int64_t>(0, whole_us)(random)));
    ::kill(process, SIGKILL);
    const int status = wait_for(process);
    ASSERT_TRUE(status == 0 || status == -SIGKILL) << status << log("killed.sqlite");
    kills += status == -SIGKILL ? 1 : 0;
    if (!std::filesystem::exists(file("killed.sqlite")) ||
        std::filesystem::file_size(file("killed.sqlite")) == 0) {
      continue;  // killed before anything was there
    }
    if (status == 0) {
      ++finished;
      EXPECT_EQ(replies("killed.sqlite"), whole_);
      for (const char* suffix : {"", "-wal", "-shm"}) {
        std::filesystem::remove(file(std::string("killed.sqlite") + suffix));
      }
      stored_before = 0;
      continue;
    }
    const auto db =
        Database::open(file("killed.sqlite"), Database::Mode::kWrite, std::chrono::seconds(5));
    ASSERT_TRUE(db.ok()) << db.status();
    if ((*db)->query_int("PRAGMA user_version").value() == 0) {
      continue;  // killed before the tables were there
    }
    expect_no_half_samples("killed.sqlite");
    const int64_t stored = query("killed.sqlite", "SELECT count(*) FROM prompts");
    EXPECT_GE(stored, stored_before);
    stored_before = stored;
  }
  ASSERT_EQ(run(sweep_, "killed.sqlite"), 0) << log("killed.sqlite");
  EXPECT_EQ(replies("killed.sqlite"), whole_);
  EXPECT_EQ(report("killed.sqlite"), whole_report_);
  ASSERT_EQ(run(sweep_, "killed.sqlite"), 0);  // nothing is left to do, nothing is doubled
  EXPECT_EQ(replies("killed.sqlite"), whole_);
  std::printf("%d kills, %d sweeps finished between them\n", kills, finished);
}

TEST_F(SweepReliability, AFullDiskEndsTheRunAndItGoesOnLater) {
  // The last limit lets the tables and some samples through.
  for (const rlim_t limit : {rlim_t{0}, rlim_t{20'000}, rlim_t{60'000}, rlim_t{250'000}}) {
    const auto before = [limit] {
      ::signal(SIGXFSZ, SIG_IGN);
      const struct rlimit size { limit, limit };
      ::setrlimit(RLIMIT_FSIZE, &size);
    };
    // The log is a file too: what matters here is the exit status and what is stored.
    EXPECT_EQ(run(sweep_, "full.sqlite", {}, before), 1) << limit;  // no signal, no crash
  }
  // A pipe has no size: the message. The limit is in KiB.
  const std::string script = fmt::format(
      "( ulimit -f 250; '{}' run '{}' --db '{}' 2>&1; echo \"exit $?\" ) | cat > '{}'\n",
      KVLAB_BINARY, file("full.sqlite.json").string(), file("message.sqlite").string(),
      file("message.txt").string());
  ASSERT_TRUE(write_file(file("message.sh"), script).ok());
  ASSERT_EQ(std::system(("bash '" + file("message.sh").string() + "'").c_str()), 0);
  EXPECT_THAT(
      read_file(file("message.txt")).value(),
      AllOf(HasSubstr("message.sqlite: cannot write"), HasSubstr("full"), HasSubstr("exit 1")));
  for (const char* db : {"full.sqlite", "message.sqlite"}) {
    expect_no_half_samples(db);
    ASSERT_EQ(run(sweep_, db), 0) << log(db);
    EXPECT_EQ(replies(db), whole_) << db;
  }
}

// Root passes every check of permissions; without these capabilities it is a user like others.
bool drop_root_powers() {
  return ::prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) == 0 &&
         ::prctl(PR_CAPBSET_DROP, CAP_DAC_READ_SEARCH, 0, 0, 0) == 0;
}

TEST_F(SweepReliability, AReadOnlyDatabaseOrFolderIsRefusedAndUnchanged) {
  const auto as_a_user = [] {
    if (::geteuid() == 0 && !drop_root_powers()) {
      ::_exit(77);
    }
  };
  const auto try_it = [&](const std::string& db) {
    const int status = run(sweep_, db, {}, as_a_user);
    if (status == 77) {
      return false;
    }
    EXPECT_NE(status, 0) << log(db);
    EXPECT_THAT(log(db), HasSubstr("cannot")) << log(db);
    return true;
  };
  std::filesystem::copy_file(file("whole.sqlite"), file("locked.sqlite"));
  // One cell fewer, so that there is something to run.
  execute("locked.sqlite", "DELETE FROM results WHERE id = 1; PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string before = read_file(file("locked.sqlite")).value();
  ::chmod(file("locked.sqlite").c_str(), 0444);
  if (!try_it("locked.sqlite")) {
    GTEST_SKIP() << "needs to be an ordinary user, or root that may give up its powers";
  }
  EXPECT_THAT(log("locked.sqlite"), HasSubstr("read-only"));
  EXPECT_EQ(read_file(file("locked.sqlite")).value(), before);
  std::filesystem::create_directories(file("closed"));
  ::chmod(file("closed").c_str(), 0555);
  EXPECT_TRUE(try_it("closed/new.sqlite"));
  EXPECT_FALSE(std::filesystem::exists(file("closed/new.sqlite")));
  ::chmod(file("closed").c_str(), 0755);
}

TEST_F(SweepReliability, AReaderOrAWriterElsewhereDoesNotEndTheRun) {
  ASSERT_EQ(run(sweep_, "read.sqlite", {"--filter", "/vt/"}), 0) << log("read.sqlite");
  const auto reader =
      Database::open(file("read.sqlite"), Database::Mode::kRead, std::chrono::seconds(5)).value();
  auto open_query = reader->prepare("SELECT * FROM results").value();
  ASSERT_TRUE(open_query.step().value());  // holds a read lock all through the run
  const auto writer =
      Database::open(file("read.sqlite"), Database::Mode::kWrite, std::chrono::seconds(5)).value();
  ASSERT_TRUE(writer->execute("BEGIN IMMEDIATE").ok());
  const pid_t process = start(sweep_, "read.sqlite");
  std::this_thread::sleep_for(whole_time_ + std::chrono::milliseconds(500));
  ASSERT_TRUE(writer->execute("ROLLBACK").ok());  // the run waited for the lock
  ASSERT_EQ(wait_for(process), 0) << log("read.sqlite");
  open_query.reset();
  EXPECT_EQ(replies("read.sqlite"), whole_);
}

TEST_F(SweepReliability, FailedCellsRunAgainOnlyWhenAsked) {
  ASSERT_EQ(run(sweep_, "failed.sqlite"), 0) << log("failed.sqlite");
  execute("failed.sqlite",
          "DELETE FROM replies WHERE result_id IN (3, 40); "
          "DELETE FROM selections WHERE result_id IN (3, 40); "
          "UPDATE results SET status = 'failed', reason = 'out of memory', score = NULL "
          "WHERE id IN (3, 40)");
  EXPECT_THAT(report("failed.sqlite"), HasSubstr("out of memory"));
  EXPECT_NE(run(sweep_, "failed.sqlite"), 0);  // what fails is not done
  EXPECT_THAT(log("failed.sqlite"), HasSubstr("2 of the sweep's cells failed"));
  EXPECT_EQ(query("failed.sqlite", "SELECT count(*) FROM failures"), 2);
  ASSERT_EQ(run(sweep_, "failed.sqlite", {"--retry", "failed"}), 0) << log("failed.sqlite");
  EXPECT_EQ(query("failed.sqlite", "SELECT count(*) FROM failures"), 0);
  EXPECT_EQ(replies("failed.sqlite"), whole_);
}

TEST_F(SweepReliability, ATimeLimitLeavesABalancedTableAndSaysHowToGoOn) {
  Json longer = sweep_;
  longer["benchmarks"][0]["samples"] = 60;
  ASSERT_EQ(run(longer, "limited.sqlite", {"--max-time", "0.3s"}), 0) << log("limited.sqlite");
  EXPECT_THAT(log("limited.sqlite"), HasSubstr("run the same command to go on"));
  const int64_t most = query(
      "limited.sqlite", "SELECT max(n) FROM (SELECT count(*) AS n FROM samples GROUP BY task)");
  const int64_t least = query(
      "limited.sqlite", "SELECT min(n) FROM (SELECT count(*) AS n FROM samples GROUP BY task)");
  EXPECT_LE(most - least, 1);
  EXPECT_LT(least, 60);
  EXPECT_EQ(query("limited.sqlite", "SELECT count(*) FROM runs WHERE outcome = 'out of time'"), 1);
}

TEST_F(SweepReliability, ShardsOfManyProcessesMakeTheTableOfOne) {
  // Three machines with a database each.
  std::vector<pid_t> processes;
  for (int i = 1; i <= 3; ++i) {
    processes.push_back(
        start(sweep_, fmt::format("shard{}.sqlite", i), {"--shard", fmt::format("{}/3", i)}));
  }
  for (const pid_t process : processes) {
    EXPECT_EQ(wait_for(process), 0);
  }
  const std::string shards =
      fmt::format("'{}' '{}' '{}'", file("shard2.sqlite").string(), file("shard3.sqlite").string(),
                  file("shard1.sqlite").string());
  output_of(fmt::format("merge {} --into '{}'", shards, file("merged.sqlite").string()));
  EXPECT_EQ(replies("merged.sqlite"), whole_);
  EXPECT_EQ(report("merged.sqlite"), whole_report_);
  EXPECT_EQ(query("merged.sqlite", "SELECT count(*) FROM runs"), 3);
  // Two processes on one machine, one database.
  processes = {start(sweep_, "shared.sqlite", {"--shard", "1/2"}),
               start(sweep_, "shared.sqlite", {"--shard", "2/2"})};
  for (const pid_t process : processes) {
    EXPECT_EQ(wait_for(process), 0) << log("shared.sqlite");
  }
  EXPECT_EQ(replies("shared.sqlite"), whole_);
  EXPECT_EQ(report("shared.sqlite"), whole_report_);
}

TEST_F(SweepReliability, ADryRunSaysWhatItTakesAndAListNamesEveryCell) {
  const std::string config = file("whole.sqlite.json").string();
  const std::string dry = output_of("run '" + config + "' --dry-run");
  for (const char* line :
       {"prefills          8", "arms              9", "cells             72 to run",
        "time              about", "memory", "database          about"}) {
    EXPECT_THAT(dry, HasSubstr(line));
  }
  EXPECT_THAT(
      output_of("run '" + config + "' --dry-run --db '" + file("whole.sqlite").string() + "'"),
      HasSubstr("0 to run, 72 stored"));
  const std::string list = output_of("run '" + config + "' --list --filter '/vt/.*/snapkv/32$'");
  EXPECT_EQ(std::count(list.begin(), list.end(), '\n'), kSamples);
}

TEST_F(SweepReliability, WrongFlagsAreRefusedBeforeAnythingRuns) {
  EXPECT_NE(run(sweep_, "flags.sqlite", {"--show-prompt", "-1"}), 0);
  EXPECT_THAT(log("flags.sqlite"), HasSubstr("counted from 0"));
  EXPECT_NE(run(sweep_, "flags.sqlite", {"--filter", std::string(100'000, 'a')}), 0);
  EXPECT_THAT(log("flags.sqlite"), HasSubstr("at most 2000"));
  for (const char* duration : {"nan", "inf", "-1", "3d", "h"}) {
    EXPECT_NE(run(sweep_, "flags.sqlite", {"--max-time", duration}), 0);
    EXPECT_THAT(log("flags.sqlite"), HasSubstr("give seconds"));
  }
  EXPECT_FALSE(std::filesystem::exists(file("flags.sqlite")));
}

}  // namespace
}  // namespace kvlab
