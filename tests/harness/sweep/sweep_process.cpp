#include "tests/harness/sweep/sweep_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "harness/base/files.h"
#include "results/sqlite.h"

namespace kvlab {
namespace {

std::unique_ptr<Database> open(const std::filesystem::path& path, Database::Mode mode) {
  auto db = Database::open(path, mode, std::chrono::seconds(5));
  EXPECT_TRUE(db.ok()) << db.status();
  return std::move(db).value();
}

}  // namespace

pid_t SweepProcessTest::start(const Json& sweep, const std::string& db,
                              const std::vector<std::string>& arguments,
                              const std::function<void()>& before) {
  const std::string config = file(db + ".json").string();
  EXPECT_TRUE(write_file(config, sweep.dump()).ok());
  const std::string database = file(db).string();
  const std::string log_file = database + ".log";
  std::vector<std::string> words = {KVLAB_BINARY, "run", config, "--db", database};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const pid_t process = ::fork();
  if (process == 0) {
    const int log = ::open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    before();
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  return process;
}

int SweepProcessTest::wait_for(pid_t process) {
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

std::string SweepProcessTest::log(const std::string& db) const {
  return read_file(file(db + ".log")).value_or("");
}

std::string SweepProcessTest::output_of(const std::string& arguments) const {
  const std::string out = file("output.txt").string();
  const int status =
      std::system(fmt::format("'{}' {} >'{}' 2>&1", KVLAB_BINARY, arguments, out).c_str());
  std::string text = read_file(out).value_or("");
  EXPECT_EQ(status, 0) << arguments << "\n" << text;
  return text;
}

std::map<std::string, std::string> SweepProcessTest::replies(const std::string& db) const {
  std::map<std::string, std::string> found;
  const auto database = open(file(db), Database::Mode::kRead);
  auto check = database->prepare("PRAGMA integrity_check").value();
  EXPECT_TRUE(check.step().value());
  EXPECT_EQ(check.text(0), "ok");
  auto rows = database
                  ->prepare(
                      "SELECT sample || ' ' || label || ' ' || budget, score || ' ' || "
                      "new_tokens || ' ' || kept_total || ' ' || reply FROM scores")
                  .value();
  while (rows.step().value()) {
    EXPECT_TRUE(found.emplace(rows.text(0), rows.text(1)).second) << rows.text(0);
  }
  return found;
}

int64_t SweepProcessTest::query(const std::string& db, const std::string& sql) const {
  return open(file(db), Database::Mode::kRead)->query_int(sql).value();
}

void SweepProcessTest::execute(const std::string& db, const std::string& sql) const {
  const absl::Status status = open(file(db), Database::Mode::kWrite)->execute(sql);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace kvlab
