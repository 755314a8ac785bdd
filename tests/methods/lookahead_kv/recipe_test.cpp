#include "methods/lookahead_kv/training/recipe.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>

#include "harness/base/files.h"
#include "harness/base/status.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Recipe : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(dir_);
    ASSERT_TRUE(write_file(dir_ / "models" / "SmolLM2-135M-Instruct" / "config.json", "{}").ok());
    if (const char* cache = std::getenv("KVLAB_CACHE")) {
      cache_ = cache;
    }
    ::setenv("KVLAB_CACHE", dir_.c_str(), 1);
  }
  void TearDown() override {
    cache_ ? ::setenv("KVLAB_CACHE", cache_->c_str(), 1) : ::unsetenv("KVLAB_CACHE");
  }

  std::string error_of(const std::string& name) {
    return message_of(load_training_recipe(dir_ / name).status());
  }
  void write(const std::string& name, const Json& recipe) {
    ASSERT_TRUE(write_file(dir_ / name, dump_json(recipe)).ok());
  }

  std::filesystem::path dir_ = std::filesystem::path(::testing::TempDir()) / "kvlab_recipes";
  std::optional<std::string> cache_;  // of the tests that follow
};

TEST_F(Recipe, AllThatShipAreValid) {
  int recipes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           std::filesystem::path(KVLAB_SOURCE_DIR) / "configs" / "train")) {
    if (entry.path().extension() == ".json") {
      const auto recipe = load_training_recipe(entry.path());
      EXPECT_TRUE(recipe.ok()) << entry.path() << ": " << recipe.status();
      ++recipes;
    }
  }
  EXPECT_GE(recipes, 10);
}

TEST_F(Recipe, ABaseIsChangedKeyByKey) {
  write("base.json", {{"model", "SmolLM2-135M-Instruct"},
                      {"adapter", {{"num_tokens", 32}, {"rank", 8}}},
                      {"data", {{"text", "x"}, {"weights", {{"facts", 1}}}}},
                      {"training", {{"learning_rate", 0.5}, {"passes", 4}}}});
  write("a/changed.json", {{"base", "../base.json"}, {"adapter", {{"rank", 2}}}});
  write("a/again.json", {{"base", "changed.json"}, {"training", {{"passes", 1}}}});
  const auto base = load_training_recipe(dir_ / "base.json").value();
  const auto again = load_training_recipe(dir_ / "a" / "again.json").value();
  EXPECT_EQ(again.shape.num_tokens, 32);
  EXPECT_EQ(again.shape.rank, 2);
  EXPECT_EQ(again.learning_rate, 0.5);
  EXPECT_EQ(again.passes, 1);
  EXPECT_NE(again.hash, base.hash);
  EXPECT_FALSE(again.source.contains("base"));

  // What a merged recipe says is what a whole file would say.
  Json whole = base.source;
  whole["adapter"]["rank"] = 2;
  whole["training"]["passes"] = 1;
  write("whole.json", whole);
  EXPECT_EQ(load_training_recipe(dir_ / "whole.json").value().hash, again.hash);
}

TEST_F(Recipe, MistakesAreNamedWithTheirFile) {
  write("missing.json", {{"base", "nowhere.json"}});
  EXPECT_THAT(error_of("missing.json"), HasSubstr("nowhere.json"));
  write("circle.json", {{"base", "circle.json"}});
  EXPECT_THAT(error_of("circle.json"), AllOf(HasSubstr("circle.json"), HasSubstr("a circle?")));
  write("odd.json", {{"bsae", "base.json"}});
  EXPECT_THAT(error_of("odd.json"), AllOf(HasSubstr("\"bsae\""), HasSubstr("base, model")));
  write("replies.json",
        {{"model", "SmolLM2-135M-Instruct"},
         {"data", {{"text", "x"}, {"weights", {{"facts", 1}}}, {"replies", "no"}}}});
  EXPECT_THAT(error_of("replies.json"), HasSubstr("own, given"));
}

}  // namespace
}  // namespace kvlab
