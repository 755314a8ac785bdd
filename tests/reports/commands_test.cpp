// The reading commands, as programs, on a small database.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "harness/base/files.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

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

TEST_F(ReadingCommands, ShowPrintsEveryArmOfASample) {
  const std::string text = run("show '" + db_ + "' --sample ruler/vt/4096/0");
  EXPECT_THAT(text, AllOf(HasSubstr("snapkv"), HasSubstr("laq"), HasSubstr("a reply")));
}

}  // namespace
}  // namespace kvlab
