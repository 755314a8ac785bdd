// `kvlab run` as a process, and what it stored: for tests of whole sweeps.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "tests/results/fixtures.h"

namespace kvlab {

class SweepProcessTest : public ::testing::Test {
 protected:
  // Starts `kvlab run` on the sweep into the database `db` of the test's folder, with more
  // arguments, after `before` has run in the child. Standard error goes to log(db).
  pid_t start(
      const Json& sweep, const std::string& db, const std::vector<std::string>& arguments = {},
      const std::function<void()>& before = [] {});
  // Its exit status, or minus the signal that ended it.
  static int wait_for(pid_t process);
  int run(
      const Json& sweep, const std::string& db, const std::vector<std::string>& arguments = {},
      const std::function<void()>& before = [] {}) {
    return wait_for(start(sweep, db, arguments, before));
  }
  std::string log(const std::string& db) const;
  std::filesystem::path file(const std::string& name) const { return folder_.path() / name; }

  // Standard output of another command of the program; fails the test on a non-zero exit.
  std::string output_of(const std::string& arguments) const;

  // Score, counts and reply by sample, method label and budget; fails the test where a cell stands
  // twice or the file is damaged.
  std::map<std::string, std::string> replies(const std::string& db) const;
  int64_t query(const std::string& db, const std::string& sql) const;
  void execute(const std::string& db, const std::string& sql) const;

  TemporaryFolder folder_;
};

}  // namespace kvlab
