// Disks that fill up, files that may not be written, locks, kills: a clear message, and never a
// half-written sample.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <random>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "results/store.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;
using Mode = ResultStore::Mode;

constexpr int kCellsASample = 5;
constexpr uid_t kNobody = 65534;

std::vector<ResultRecord> five_cells() {
  std::vector<ResultRecord> results;
  for (int i = 0; i < kCellsASample; ++i) {
    results.push_back(test_result("snapkv", std::to_string(64 << i)));
    results.back().reply = std::string(3000, 'r');
  }
  return results;
}

// Every stored sample has all its cells and every cell its reply.
void expect_whole(const std::filesystem::path& path, int64_t at_least) {
  const auto store = ResultStore::open(path, Mode::kWrite);
  ASSERT_TRUE(store.ok()) << store.status();
  const Database& db = (*store)->database();
  auto check = db.prepare("PRAGMA integrity_check").value();
  ASSERT_TRUE(check.step().value());
  EXPECT_EQ(check.text(0), "ok");
  const int64_t samples = db.query_int("SELECT count(*) FROM samples").value();
  EXPECT_GE(samples, at_least);
  EXPECT_EQ(db.query_int("SELECT count(*) FROM results").value(), samples * kCellsASample);
  EXPECT_EQ(db.query_int("SELECT count(*) FROM replies").value(), samples * kCellsASample);
  EXPECT_EQ(db.query_int("SELECT count(*) FROM pragma_foreign_key_check").value(), 0);
}

class FaultsTest : public ::testing::Test {
 protected:
  // A database with one sample, closed.
  void make_database() {
    auto store = ResultStore::open(path_, Mode::kCreate).value();
    ASSERT_TRUE(store->begin_run(test_run()).ok());
    ASSERT_TRUE(store->write_sample(test_sample(), five_cells()).ok());
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "results.sqlite";
};

TEST_F(FaultsTest, AFileThatIsNoDatabaseIsRefusedAndUnchanged) {
  const std::string text =
      "this is a text file, long enough to hold a header " + std::string(200, '.');
  ASSERT_TRUE(write_file(path_, text).ok());
  for (const Mode mode : {Mode::kRead, Mode::kWrite, Mode::kCreate}) {
    EXPECT_THAT(message_of(ResultStore::open(path_, mode).status()),
                HasSubstr("not an SQLite database"));
  }
  EXPECT_EQ(read_file(path_).value(), text);
}

TEST_F(FaultsTest, ADatabaseOfSomethingElseIsRefusedAndUnchanged) {
  {
    auto db = Database::open(path_, Database::Mode::kCreate, std::chrono::seconds(1)).value();
    ASSERT_TRUE(db->execute("CREATE TABLE songs (title TEXT)").ok());
  }
  const std::string before = read_file(path_).value();
  for (const Mode mode : {Mode::kRead, Mode::kWrite, Mode::kCreate}) {
    EXPECT_THAT(message_of(ResultStore::open(path_, mode).status()),
                HasSubstr("not one of kvlab's"));
  }
  EXPECT_EQ(read_file(path_).value(), before);
}

TEST_F(FaultsTest, MissingFilesFoldersAndEmptyFilesAreNamed) {
  EXPECT_THAT(message_of(ResultStore::open(path_, Mode::kRead).status()),
              HasSubstr("no such file"));
  EXPECT_THAT(message_of(ResultStore::open(path_, Mode::kWrite).status()),
              HasSubstr("no such file"));
  EXPECT_THAT(message_of(ResultStore::open(folder_.path(), Mode::kCreate).status()),
              HasSubstr("is a folder"));
  ASSERT_TRUE(write_file(path_, "").ok());
  EXPECT_THAT(message_of(ResultStore::open(path_, Mode::kRead).status()),
              HasSubstr("empty database"));
  const auto nested = folder_.path() / "a" / "b%20 ?#" / "c.sqlite";
  EXPECT_TRUE(ResultStore::open(nested, Mode::kCreate).ok());
  EXPECT_TRUE(std::filesystem::exists(nested));
  EXPECT_THAT(
      message_of(ResultStore::open(path_ / "below a file" / "x.sqlite", Mode::kCreate).status()),
      HasSubstr("cannot create folder"));
}

TEST_F(FaultsTest, ADamagedDatabaseIsAnError) {
  make_database();
  std::string bytes = read_file(path_).value();
  for (size_t i = 100; i < bytes.size(); i += 3) {
    bytes[i] = static_cast<char>(i * 31);
  }
  ASSERT_TRUE(write_file(path_, bytes).ok());
  const auto store = ResultStore::open(path_, Mode::kWrite);
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(message_of(store.status()), HasSubstr("results.sqlite"));
}

TEST_F(FaultsTest, ALockedDatabaseIsUnavailableAfterTheWait) {
  make_database();
  auto store =
      ResultStore::open(path_, Mode::kWrite, {.busy_timeout = std::chrono::milliseconds(100)})
          .value();
  ASSERT_TRUE(store->begin_run(test_run()).ok());
  auto other = Database::open(path_, Database::Mode::kWrite, std::chrono::seconds(1)).value();
  ASSERT_TRUE(other->execute("BEGIN IMMEDIATE").ok());
  const absl::Status status = store->write_sample(test_sample("vt", 1), five_cells()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(message_of(status), HasSubstr("locked by another process"));
  ASSERT_TRUE(other->execute("ROLLBACK").ok());
  EXPECT_TRUE(store->write_sample(test_sample("vt", 1), five_cells()).ok());
  expect_whole(path_, 2);
}

TEST_F(FaultsTest, TwoWritersWaitForEachOther) {
  make_database();
  const auto write = [&](const std::string& task) {
    auto store = ResultStore::open(path_, Mode::kWrite).value();
    EXPECT_TRUE(store->begin_run(test_run()).ok());
    for (int64_t i = 0; i < 40; ++i) {
      const auto written = store->write_sample(test_sample(task, i), five_cells());
      EXPECT_TRUE(written.ok()) << written.status();
    }
  };
  std::thread other(write, "fwe");
  write("cwe");
  other.join();
  expect_whole(path_, 81);
}

TEST_F(FaultsTest, ManyMakeOneDatabaseTogether) {
  for (int round = 0; round < 40; ++round) {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix);
    }
    std::vector<std::thread> openers;
    std::barrier together(6);
    for (int i = 0; i < 6; ++i) {
      openers.emplace_back([&] {
        together.arrive_and_wait();
        const auto store = ResultStore::open(path_, Mode::kCreate);
        ASSERT_TRUE(store.ok()) << store.status();
        EXPECT_TRUE((*store)->begin_run(test_run()).ok());
      });
    }
    for (std::thread& opener : openers) {
      opener.join();
    }
    const auto store = ResultStore::open(path_, Mode::kWrite).value();
    EXPECT_EQ(store->database().query_int("SELECT count(*) FROM runs").value(), 6);
  }
}

// The rest runs in child processes: limits and users are the process's.

TEST_F(FaultsTest, AFullDiskIsAnErrorAndTheStoredSamplesStay) {
  make_database();
  const auto fill = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit { 300'000, 300'000 };
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto store = ResultStore::open(path_, Mode::kWrite).value();
    absl::Status status = store->begin_run(test_run()).status();
    for (int64_t i = 1; i < 1000 && status.ok(); ++i) {
      status = store->write_sample(test_sample("vt", i), five_cells()).status();
    }
    std::fprintf(stderr, "%s\n", message_of(status).c_str());
    std::_Exit(status.ok() ? 0 : 3);
  };
  EXPECT_EXIT(fill(), ::testing::ExitedWithCode(3), "results.sqlite: cannot write: .*full");
  expect_whole(path_, 2);
}

TEST_F(FaultsTest, ReadOnlyFilesCanBeReadAndNotWritten) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to become another user";
  }
  make_database();
  ::chmod(path_.c_str(), 0444);
  ::chmod(folder_.path().c_str(), 0755);
  const auto as_nobody = [&](Mode mode) {
    if (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) {
      std::_Exit(9);
    }
    auto store = ResultStore::open(path_, mode);
    absl::Status status = store.status();
    if (status.ok() && mode == Mode::kRead) {
      status = (*store)->stored_keys().status();
      std::fprintf(stderr, "%s\n", status.ok() ? "read" : message_of(status).c_str());
      std::_Exit(0);
    }
    if (status.ok()) {
      status = (*store)->begin_run(test_run()).status();
    }
    std::fprintf(stderr, "%s\n", message_of(status).c_str());
    std::_Exit(status.ok() ? 0 : 3);
  };
  EXPECT_EXIT(as_nobody(Mode::kRead), ::testing::ExitedWithCode(0), "^read");
  EXPECT_EXIT(as_nobody(Mode::kWrite), ::testing::ExitedWithCode(3),
              "results.sqlite: cannot .*read-only");
  ::chmod(path_.c_str(), 0000);
  EXPECT_EXIT(as_nobody(Mode::kWrite), ::testing::ExitedWithCode(3),
              "results.sqlite: cannot open.*Permission denied");
  ::chmod(path_.c_str(), 0666);
  // Writable file, folder that is not: SQLite cannot make its log there.
  EXPECT_EXIT(as_nobody(Mode::kWrite), ::testing::ExitedWithCode(3), "results.sqlite: cannot ");
  const auto create_elsewhere = [&] {
    path_ = folder_.path() / "new.sqlite";
    as_nobody(Mode::kCreate);
  };
  EXPECT_EXIT(create_elsewhere(), ::testing::ExitedWithCode(3), "new.sqlite: cannot open");
  ::chmod(path_.c_str(), 0644);
  expect_whole(path_, 1);
}

TEST_F(FaultsTest, KillsAtRandomMomentsLoseNoSampleAndHalveNone) {
  make_database();
  std::mt19937 random(11);
  int64_t known = 1;
  for (int round = 0; round < 20; ++round) {
    int reports[2];
    ASSERT_EQ(::pipe(reports), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = ResultStore::open(path_, Mode::kWrite).value();
      (void)store->begin_run(test_run());
      for (int64_t i = 0;; ++i) {
        if (!store->write_sample(test_sample("r" + std::to_string(round), i), five_cells()).ok() ||
            ::write(reports[1], "x", 1) != 1) {
          std::_Exit(4);
        }
      }
    }
    ::close(reports[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 40));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the child ended by itself";
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(reports[0], buffer, sizeof buffer)) > 0;) {
      known += n;  // samples whose write had returned
    }
    ::close(reports[0]);
    expect_whole(path_, known);
  }
  EXPECT_GT(known, 20);
}

}  // namespace
}  // namespace kvlab
