#include "methods/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/base/status.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string error_of(std::string_view name, const Json& params) {
  const auto policy = make_policy(name, params);
  return policy.ok() ? "" : message_of(policy.status());
}

TEST(Registry, EveryMethodIsMadeByItsDefaultsAndEveryVariant) {
  std::set<std::string> names;
  for (const MethodInfo& info : list_methods()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    const auto policy = make_policy(info.name, nullptr);
    ASSERT_TRUE(policy.ok()) << policy.status();
    EXPECT_EQ((*policy)->name(), info.name);
    // Beside the parameters there may be facts that decide the result, such as an adapter's hash.
    for (const MethodParameter& parameter : info.parameters) {
      EXPECT_TRUE((*policy)->resolved_params().contains(parameter.name)) << parameter.name;
    }
    for (const MethodVariant& variant : info.variants) {
      const auto other = make_policy(info.name, Json{{"variant", variant.name}});
      ASSERT_TRUE(other.ok()) << other.status();
      for (const auto& [key, value] : variant.overrides.items()) {
        EXPECT_EQ((*other)->resolved_params().at(key), value) << info.name << " " << key;
      }
    }
  }
}

TEST(Registry, EveryInfoSaysWhatItIs) {
  for (const MethodInfo& info : list_methods()) {
    EXPECT_FALSE(info.summary.empty() || info.source.empty() || info.cost.empty()) << info.name;
    for (const MethodParameter& parameter : info.parameters) {
      EXPECT_FALSE(parameter.meaning.empty()) << info.name << " " << parameter.name;
    }
  }
}

TEST(Registry, DefaultsOfThePapersComparison) {
  const Json params = (*make_policy("snapkv", {}))->resolved_params();
  EXPECT_EQ(params.at("window"), 32);
  EXPECT_EQ(params.at("kernel"), 7);
  EXPECT_EQ(params.at("pooling"), "max");
  EXPECT_EQ(params.at("row_reduction"), "mean");
  EXPECT_EQ(params.at("group_reduction"), "mean");
}

TEST(Registry, GivenParametersWinOverTheVariants) {
  const auto policy = make_policy("snapkv", {{"variant", "kvpress"}, {"window", 16}});
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ((*policy)->resolved_params().at("window"), 16);
  EXPECT_EQ((*policy)->resolved_params().at("kernel"), 5);
}

TEST(Registry, RefusesWhatIsWrongAndSaysWhatIsValid) {
  EXPECT_THAT(error_of("snapvk", {}), AllOf(HasSubstr("snapvk"), HasSubstr("streaming_llm")));
  EXPECT_THAT(error_of("snapkv", {{"windw", 8}}), AllOf(HasSubstr("windw"), HasSubstr("window")));
  EXPECT_THAT(error_of("snapkv", {{"window", "8"}}), HasSubstr("whole number"));
  EXPECT_THAT(error_of("snapkv", {{"window", 8.5}}), HasSubstr("whole number"));
  EXPECT_THAT(error_of("snapkv", {{"window", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(error_of("snapkv", {{"window", 0}}), HasSubstr("no query"));
  EXPECT_THAT(error_of("snapkv", {{"kernel", 4}}), HasSubstr("odd"));
  EXPECT_THAT(error_of("snapkv", {{"pooling", "median"}}), HasSubstr("none, max, avg"));
  EXPECT_THAT(error_of("snapkv", {{"pooling", 3}}), HasSubstr("none, max, avg"));
  EXPECT_THAT(error_of("snapkv", {{"variant", "hf"}}), HasSubstr("paper, kvpress"));
  EXPECT_THAT(error_of("adakv", {{"adaptive_floor", 1.5}}), HasSubstr("at most 1"));
  EXPECT_THAT(error_of("snapkv", Json::array()), HasSubstr("expected an object"));
  EXPECT_THAT(error_of("full", {{"window", 8}}), HasSubstr("none"));
}

TEST(Registry, AFirstStageIsStoredWithEveryParameter) {
  const auto plain = make_policy("laq", {});
  const auto given = make_policy("laq", {{"first_stage_params", {{"window", 32}}}});
  ASSERT_TRUE(plain.ok() && given.ok());
  EXPECT_EQ((*plain)->resolved_params(), (*given)->resolved_params());
  EXPECT_EQ((*plain)->resolved_params().at("first_stage_params"),
            (*make_policy("snapkv", {}))->resolved_params());
  EXPECT_EQ((*make_policy("laq", (*plain)->resolved_params()))->resolved_params(),
            (*plain)->resolved_params());
}

TEST(Registry, AFirstStageLooksAtThePromptAlone) {
  for (const char* stage : {"oracle", "laq", "speckv", "lookahead_kv"}) {
    Json params = {{"first_stage", stage}};
    EXPECT_THAT(message_of(make_policy("laq", params).status()), HasSubstr("prompt alone"));
  }
  EXPECT_THAT(message_of(make_policy("laq", {{"first_stage", "speckv"},
                                             {"first_stage_params", {{"draft_tokens", 0}}}})
                             .status()),
              HasSubstr("prompt alone"));
}

}  // namespace
}  // namespace kvlab
