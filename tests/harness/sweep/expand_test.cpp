#include "harness/sweep/expand.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace kvlab {
namespace {

using ::testing::HasSubstr;

TEST(Expand, RangesMultiplyOrAdd) {
  const Json value = {{"budgets", {{"from", 64}, {"to", 2048}, {"times", 2}}},
                      {"windows", Json::array({4, {{"from", 8}, {"to", 24}, {"step", 8}}})}};
  const Json expanded = expand_lists(value, Json::object(), "f").value();
  EXPECT_EQ(expanded.at("budgets"), Json({64, 128, 256, 512, 1024, 2048}));
  EXPECT_EQ(expanded.at("windows"), Json({4, 8, 16, 24}));
}

TEST(Expand, RangesThatGoDownOrNeverEndAreRefused) {
  for (const Json& range :
       {Json{{"from", 8}, {"to", 4}, {"step", 1}}, Json{{"from", 1}, {"to", 4}, {"times", 0.5}},
        Json{{"from", 0}, {"to", 4}, {"times", 2}}, Json{{"from", 0}, {"to", 1e9}, {"step", 1}}}) {
    EXPECT_FALSE(expand_lists(range, Json::object(), "f").ok()) << range;
  }
}

TEST(Expand, GroupsAreSplicedIntoLists) {
  const Json groups = {{"small", {64, 128}}};
  EXPECT_EQ(expand_lists(Json("@small"), groups, "f").value(), Json({64, 128}));
  EXPECT_EQ(expand_lists(Json::array({32, "@small"}), groups, "f").value(), Json({32, 64, 128}));
  EXPECT_THAT(message_of(expand_lists(Json("@smal"), groups, "f").status()), HasSubstr("small"));
}

TEST(Expand, CrossProductsKeepOrder) {
  const auto combinations = cross_product({{"a", {1, 2}}, {"b", {3, 4}}, {"c", "x"}});
  ASSERT_EQ(combinations.size(), 4U);
  EXPECT_EQ(combinations[1], Json({{"a", 1}, {"b", 4}, {"c", "x"}}));
}

TEST(Expand, VariablesComeFromTheEnvironmentOrTheirDefault) {
  ASSERT_EQ(setenv("KVLAB_TEST_VARIABLE", "there", 1), 0);
  const Json value = {{"a", {"${KVLAB_TEST_VARIABLE}/x", "${KVLAB_TEST_ABSENT:-else}"}}};
  EXPECT_EQ(expand_variables(value, "f").value().at("a"), Json({"there/x", "else"}));
  EXPECT_THAT(message_of(expand_variables(Json("${KVLAB_TEST_ABSENT}"), "f").status()),
              HasSubstr("KVLAB_TEST_ABSENT"));
  EXPECT_FALSE(expand_variables(Json("${OPEN"), "f").ok());
}

}  // namespace
}  // namespace kvlab
