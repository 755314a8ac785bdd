// Training prompts as the model is given them: what is dropped and why, and replies that survive a
// kill.
#include "methods/lookahead_kv/training/sample_set.h"

#include <gmock/gmock.h>

#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/datasets/training/made_up_corpus.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Thirteen words and more of each sort.
constexpr std::string_view kLicence =
    "This program is free software: you can redistribute it and/or modify it under the terms of "
    "the "
    "licence that came with it.";
constexpr std::string_view kSecret =
    "The lighthouse keeper of Varn counted seventeen white herons before the storm took the pier "
    "away for ever.";

class SampleSet : public ::testing::Test {
 protected:
  void SetUp() override {
    KVLAB_DEFAULT_MODEL_OR_SKIP(model);
    dir_ = std::filesystem::path(::testing::TempDir()) / "kvlab_sample_set";
    std::filesystem::remove_all(dir_);
    tokenizer_ = Tokenizer::load(model).value();
    format_ = PromptFormat::load(model).value();
    EXPECT_TRUE(write_made_up_corpus(dir_ / "text").ok());
    EXPECT_TRUE(write_file(dir_ / "benchmark.txt",
                           fmt::format("A page of a benchmark. {}\n{}\n", kLicence, kSecret))
                    .ok());
    EXPECT_TRUE(write_file(dir_ / "licences" / "GPL-3", kLicence).ok());
    std::string lines;
    for (const std::string_view text : {std::string_view("Say what a heron is."), kLicence, kSecret,
                                        std::string_view("Name a colour of the sea.")}) {
      lines += dump_json({{"messages",
                           {{{"role", "user"}, {"content", text}},
                            {{"role", "assistant"}, {"content", "A bird of the marsh."}}}}}) +
               "\n";
    }
    EXPECT_TRUE(write_file(dir_ / "instructions.jsonl", lines).ok());
    recipe_.path = "recipe.json";
    recipe_.text_dir = dir_ / "text";
    recipe_.mix = {.num_prompts = 4,
                   .min_tokens = 128,
                   .max_tokens = 256,
                   .seed = 3,
                   .weights = {{"completion", 1.0}}};
    recipe_.instruction_files = {dir_ / "instructions.jsonl"};
    recipe_.benchmark_texts = {dir_ / "benchmark.txt", dir_ / "not_there"};
    recipe_.boilerplate_texts = {dir_ / "licences"};
    recipe_.max_reply_tokens = 16;
  }

  PromptSet make() { return make_prompt_set(recipe_, *tokenizer_, format_, 8192).value(); }

  std::filesystem::path dir_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  PromptFormat format_;
  TrainingRecipe recipe_;
};

TEST_F(SampleSet, PromptsThatShareABenchmarksTextAreDroppedAndBoilerplateIsNamed) {
  const PromptSet set = make();
  EXPECT_EQ(set.samples.size(), 6U);
  EXPECT_EQ(set.facts.at("dropped").at("shares 13 words with a benchmark text"), 1);
  EXPECT_EQ(set.facts.at("dropped").at("shares 13 words of boilerplate with a benchmark text"), 1);
  EXPECT_THAT(dump_json(set.facts.at("shared_examples")), HasSubstr("lighthouse"));
  EXPECT_THAT(dump_json(set.facts.at("boilerplate_examples")), HasSubstr("free software"));
  EXPECT_EQ(set.facts.at("benchmark_texts_absent"), Json::array({"not_there"}));
  for (const TrainingSample& sample : set.samples) {
    EXPECT_THAT(tokenizer_->decode(sample.prompt_ids, true), ::testing::Not(HasSubstr("heron of")));
  }
}

TEST_F(SampleSet, GivenRepliesAreTheFilesAndOthersAreLeftOut) {
  recipe_.mix.weights = {{"summary", 1.0}};  // has no right answer
  const PromptSet own = make();
  recipe_.replies = Replies::kGiven;
  PromptSet given = make();
  ASSERT_EQ(given.samples.size(), 2U);
  EXPECT_EQ(given.facts.at("dropped").at("has no given reply"), 4);
  EXPECT_NE(given.hash, own.hash);
  for (const TrainingSample& sample : given.samples) {
    EXPECT_EQ(tokenizer_->decode(sample.reply_ids, true), "A bird of the marsh.");
  }
  const auto never = [](std::span<const TrainingSample>) {
    ADD_FAILURE() << "nothing was to be written";
    return absl::StatusOr<std::vector<std::vector<int32_t>>>();
  };
  EXPECT_TRUE(
      complete_replies(dir_ / "given.jsonl", given, 2, never, [](int64_t, int64_t) {}).ok());
}

TEST_F(SampleSet, WhatHasNoGivenReplyGetsTheModelsOwn) {
  recipe_.mix.weights = {{"summary", 1.0}, {"facts", 1.0}};
  recipe_.mix.num_prompts = 8;
  recipe_.replies = Replies::kGivenOrOwn;
  PromptSet set = make();
  int64_t written = 0;
  const auto write = [&](std::span<const TrainingSample> prompts) {
    for (const TrainingSample& prompt : prompts) {
      EXPECT_EQ(prompt.kind, "summary");
      ++written;
    }
    return absl::StatusOr<std::vector<std::vector<int32_t>>>(
        std::vector<std::vector<int32_t>>(prompts.size(), {7}));
  };
  ASSERT_TRUE(complete_replies(dir_ / "mixed.jsonl", set, 2, write, [](int64_t, int64_t) {}).ok());
  int64_t facts = 0;
  for (const TrainingSample& sample : set.samples) {
    EXPECT_EQ(sample.kind == "summary", sample.reply_ids == std::vector<int32_t>{7}) << sample.kind;
    facts += sample.kind == "facts" ? 1 : 0;
  }
  EXPECT_GT(written, 0);
  EXPECT_GT(facts, 0);
}

TEST_F(SampleSet, RepliesGoOnWhereAKilledRunStopped) {
  const std::filesystem::path file = dir_ / "replies.jsonl";
  std::vector<size_t> batches;
  const auto write = [&](std::span<const TrainingSample> prompts) {
    batches.push_back(prompts.size());
    std::vector<std::vector<int32_t>> replies;
    for (const TrainingSample& prompt : prompts) {
      replies.push_back({prompt.prompt_ids.back(), static_cast<int32_t>(prompt.prompt_ids.size())});
    }
    return absl::StatusOr<std::vector<std::vector<int32_t>>>(std::move(replies));
  };
  const auto quiet = [](int64_t, int64_t) {};
  PromptSet whole = make();
  ASSERT_TRUE(complete_replies(file, whole, 4, write, quiet).ok());
  EXPECT_THAT(batches, ElementsAre(4U, 2U));

  // Two lines and half of the third are on disk.
  const std::string text = read_file(file).value();
  const size_t second = text.find('\n', text.find('\n') + 1);
  ASSERT_TRUE(write_file(file, text.substr(0, second + 10)).ok());
  batches.clear();
  PromptSet resumed = make();
  ASSERT_TRUE(complete_replies(file, resumed, 4, write, quiet).ok());
  EXPECT_THAT(batches, ElementsAre(4U));
  ASSERT_EQ(resumed.samples.size(), whole.samples.size());
  for (size_t i = 0; i < whole.samples.size(); ++i) {
    EXPECT_EQ(resumed.samples[i].reply_ids, whole.samples[i].reply_ids);
  }
}

}  // namespace
}  // namespace kvlab
