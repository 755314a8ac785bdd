#include "harness/bench/bench_config.h"

#include <gmock/gmock.h>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/harness/model/golden_file.h"
#include "tests/results/fixtures.h"

namespace kvlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BenchConfigTest : public ::testing::Test {
 protected:
  absl::StatusOr<BenchConfig> load(Json changes, const BenchOverrides& overrides = {}) {
    Json file = {{"model", (golden_dir() / "models" / "tiny-gqa").string()},
                 {"methods", {"full", "snapkv"}},
                 {"lengths", {64}}};
    file.update(changes);
    const auto path = folder_.path() / "bench.json";
    EXPECT_TRUE(write_file(path, dump_json(file)).ok());
    return load_bench_config(path, overrides);
  }

  TemporaryFolder folder_;
};

TEST_F(BenchConfigTest, ReadsAFileWithDefaults) {
  const auto config = load({{"lengths", {{{"from", 32}, {"to", 128}, {"times", 2}}}}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->lengths, ElementsAre(32, 64, 128));
  EXPECT_THAT(config->budgets, ElementsAre(128));
  EXPECT_EQ(config->repetitions, 5);
  EXPECT_EQ(config->methods.size(), 2U);
}

TEST_F(BenchConfigTest, TheCommandLineReplacesWhatTheFileSays) {
  BenchOverrides overrides;
  overrides.lengths = {16, 48};
  overrides.methods = {"snapkv"};
  overrides.repetitions = 2;
  const auto config = load(Json::object(), overrides);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->lengths, ElementsAre(16, 48));
  EXPECT_EQ(config->methods.front().name, "snapkv");
  EXPECT_EQ(config->repetitions, 2);
  overrides.methods = {"h2o"};
  EXPECT_THAT(message_of(load(Json::object(), overrides).status()), HasSubstr("h2o"));
}

TEST_F(BenchConfigTest, RefusesWhatCannotBe) {
  EXPECT_THAT(message_of(load({{"speed", 1}}).status()), HasSubstr("speed"));
  EXPECT_THAT(message_of(load({{"lengths", {1 << 20}}}).status()), HasSubstr("positions"));
  EXPECT_THAT(message_of(load({{"positions", 5000}}).status()), HasSubstr("random_weights"));
  EXPECT_FALSE(load({{"lengths", {0}}}).ok());
  EXPECT_FALSE(load({{"new_tokens", 1}}).ok());
  EXPECT_FALSE(load({{"model", "/nowhere"}}).ok());
  const auto raised =
      load({{"random_weights", true}, {"positions", 1 << 17}, {"lengths", {1 << 16}}});
  ASSERT_TRUE(raised.ok()) << raised.status();
  EXPECT_EQ(raised->model.max_positions, 1 << 17);
}

}  // namespace
}  // namespace kvlab
