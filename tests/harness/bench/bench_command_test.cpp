// `kvlab bench`, `kvlab predict` and their reports, as programs, on a tiny model.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class BenchCommands : public ::testing::Test {
 protected:
  // What `kvlab ARGUMENTS` printed, and whether it succeeded.
  std::pair<std::string, bool> run(const std::string& arguments) {
    const std::string out = (folder_.path() / "out.txt").string();
    const int status =
        std::system(fmt::format("'{}' {} > '{}' 2>&1", KVLAB_BINARY, arguments, out).c_str());
    return {read_file(out).value_or(""), status == 0};
  }

  TemporaryFolder folder_;
};

TEST_F(BenchCommands, MeasureAndReport) {
  const std::string model =
      (std::filesystem::path(KVLAB_TEST_DIR) / "golden" / "models" / "tiny-gqa").string();
  const Json file = {{"model", model},        {"methods", {"full", "snapkv"}},
                     {"lengths", {100, 200}}, {"budgets", {48}},
                     {"arms", {1, 2}},        {"new_tokens", 3},
                     {"repetitions", 2},      {"warmup", 0}};
  const std::string config = (folder_.path() / "bench.json").string();
  ASSERT_TRUE(write_file(config, dump_json(file)).ok());
  const std::string db = (folder_.path() / "bench.sqlite").string();
  const auto listed =
      run(fmt::format("bench '{}' --list --device-model h100 --allow-debug", config));
  EXPECT_TRUE(listed.second) << listed.first;
  EXPECT_THAT(listed.first, AllOf(HasSubstr("snapkv"), HasSubstr("by_layers")));
  const auto measured =
      run(fmt::format("bench '{}' --db '{}' --device-model h100 --allow-debug", config, db));
  ASSERT_TRUE(measured.second) << measured.first;
  const auto report = run(fmt::format("report '{}' --layout efficiency", db));
  EXPECT_TRUE(report.second) << report.first;
  EXPECT_THAT(report.first, AllOf(HasSubstr("measured cost"), HasSubstr("inside prefill"),
                                  HasSubstr("measured and predicted"), HasSubstr("2 arms")));
  const auto growth = run(fmt::format("report '{}' --layout growth --format markdown", db));
  EXPECT_TRUE(growth.second) << growth.first;
  EXPECT_THAT(growth.first, AllOf(HasSubstr("growth with prompt tokens"), HasSubstr("arms")));
  const std::string merged = (folder_.path() / "merged.sqlite").string();
  EXPECT_TRUE(run(fmt::format("merge '{}' --into '{}'", db, merged)).second);
  EXPECT_TRUE(run(fmt::format("merge '{}' --into '{}'", db, merged)).second);
  EXPECT_EQ(run(fmt::format("report '{}' --layout growth --format csv", merged)).first,
            run(fmt::format("report '{}' --layout growth --format csv", db)).first);
}

TEST_F(BenchCommands, SayWhatIsWrong) {
  const auto missing = run("bench /nowhere.json --db x.sqlite --allow-debug");
  EXPECT_FALSE(missing.second);
  EXPECT_THAT(missing.first, HasSubstr("/nowhere.json"));
  const auto device = run("predict --device abacus");
  EXPECT_FALSE(device.second);
  EXPECT_THAT(device.first, HasSubstr("h200"));
}

TEST_F(BenchCommands, NoMoreThreadsThanAProcessCanHave) {
  for (const char* command :
       {"bench x.json", "train x.json --out x", "generate --model x --prompt-file x",
        "select --model x --prompt-file x --method snapkv"}) {
    const auto result = run(fmt::format("{} --threads 99999999", command));
    EXPECT_FALSE(result.second) << command;
    EXPECT_THAT(result.first, AllOf(HasSubstr("--threads"), HasSubstr("0 to 256"))) << command;
  }
}

TEST_F(BenchCommands, PredictPrintsATable) {
  const auto table = run("predict --model llama-3.1-70b --lengths 131072 --format markdown");
  EXPECT_TRUE(table.second) << table.first;
  EXPECT_THAT(table.first, AllOf(HasSubstr("lookahead"), HasSubstr("131072")));
}

}  // namespace
}  // namespace kvlab
