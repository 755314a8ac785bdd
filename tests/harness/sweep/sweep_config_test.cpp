#include "harness/sweep/sweep_config.h"

#include <gmock/gmock.h>

#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SweepConfigTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(::testing::TempDir()) / "kvlab_sweep_config";
    ASSERT_TRUE(write_file(dir_ / "model" / "config.json", "{}").ok());
    file_ = Json{{"model", (dir_ / "model").string()},
                 {"benchmarks", Json::array({{{"name", "ruler"}, {"tasks", {"vt"}}}})},
                 {"methods", {"full", "snapkv"}},
                 {"budgets", {64, 128}}};
  }

  absl::StatusOr<SweepConfig> load(const std::string& text) {
    EXPECT_TRUE(write_file(dir_ / "sweep.json", text).ok());
    return load_sweep_config(dir_ / "sweep.json");
  }
  absl::StatusOr<SweepConfig> load() { return load(file_.dump()); }

  std::filesystem::path dir_;
  Json file_;
};

TEST_F(SweepConfigTest, ListsExpandToMethodsWithBudgets) {
  file_["methods"].push_back(
      {{"name", "snapkv"}, {"params", {{"window", {8, 32}}}}, {"budgets", {{{"share", 0.1}}}}});
  const SweepConfig config = load().value();
  ASSERT_EQ(config.methods.size(), 4U);
  EXPECT_EQ(config.methods[1].budgets.size(), 2U);
  EXPECT_EQ(config.methods[2].params, Json({{"window", 8}}));
  EXPECT_EQ(config.methods[3].budgets[0].text(), "10%");
  EXPECT_EQ(config.methods[3].budgets[0].resolve(4096), 410);
  EXPECT_EQ(config.benchmarks[0].params, Json({{"tasks", {"vt"}}}));
}

TEST_F(SweepConfigTest, UnknownKeysNameTheirPlace) {
  file_["methods"].push_back({{"name", "snapkv"}, {"windw", 8}});
  EXPECT_THAT(message_of(load().status()), AllOf(HasSubstr("methods[2]"), HasSubstr("windw")));
}

TEST_F(SweepConfigTest, UnknownTopLevelKeysAreRefused) {
  file_["budget"] = 64;
  EXPECT_THAT(message_of(load().status()), HasSubstr("budget"));
}

TEST_F(SweepConfigTest, DuplicateKeysAreRefused) {
  const std::string text = file_.dump();
  EXPECT_THAT(message_of(load(text.substr(0, text.size() - 1) + ", \"model\": \"x\"}").status()),
              HasSubstr("twice"));
}

TEST_F(SweepConfigTest, ImpossibleBudgetsNameTheirPlace) {
  for (const Json& bad : {Json(0), Json(-4), Json(1.5), Json({{"share", 0}}), Json({{"share", 2}}),
                          Json("64"), Json({{"shares", 0.5}})}) {
    file_["budgets"] = Json::array({64, bad});
    EXPECT_THAT(message_of(load().status()), HasSubstr("budgets[1]")) << bad;
  }
  file_["budgets"] = {64, 64};
  EXPECT_THAT(message_of(load().status()), HasSubstr("stands twice"));
}

TEST_F(SweepConfigTest, AMissingModelSaysWhereItWasLookedFor) {
  file_["model"] = "no-such-model";
  EXPECT_THAT(message_of(load().status()),
              AllOf(HasSubstr("no-such-model"), HasSubstr("config.json")));
}

TEST_F(SweepConfigTest, CommentsAreAllowed) {
  EXPECT_TRUE(load("// a first sweep\n" + file_.dump()).ok());
}

}  // namespace
}  // namespace kvlab
