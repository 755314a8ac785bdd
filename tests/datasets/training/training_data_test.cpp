#include <absl/strings/str_replace.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "datasets/training/builder.h"
#include "datasets/training/instruction_files.h"
#include "datasets/training/leak_check.h"
#include "datasets/training/prompt_kinds.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/datasets/training/made_up_corpus.h"

namespace kvlab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// About four characters a token, like an English tokenizer.
int64_t count_tokens(std::string_view text) { return static_cast<int64_t>(text.size()) / 4 + 1; }

TrainingCorpus make_corpus() {
  const auto dir = std::filesystem::path(::testing::TempDir()) / "kvlab_training_corpus";
  EXPECT_TRUE(write_made_up_corpus(dir).ok());
  return load_training_corpus(dir).value();
}

TEST(TrainingPrompts, EveryKindFillsTheWantedLengthAndAsksSomething) {
  const TrainingCorpus corpus = make_corpus();
  for (const PromptKind& kind : prompt_kinds()) {
    for (const int64_t tokens : {512, 2048}) {
      for (uint64_t seed = 0; seed < 20; ++seed) {
        SeededRandom random(seed);
        const TrainingPrompt prompt = kind.make({&corpus, count_tokens, tokens}, random);
        EXPECT_EQ(prompt.kind, kind.name);
        EXPECT_GT(prompt.max_new_tokens, 0);
        EXPECT_LT(count_tokens(prompt.text), tokens * 3 / 2 + 200) << kind.name;
        EXPECT_GT(count_tokens(prompt.text), tokens / 4) << kind.name;
        EXPECT_THAT(prompt.text, ::testing::Not(HasSubstr("{subject}"))) << kind.name;
        EXPECT_THAT(prompt.text, ::testing::Not(HasSubstr("{value}"))) << kind.name;
      }
    }
  }
}

// Right answers stand in the prompt, word by word; a summary has none.
TEST(TrainingPrompts, GivenRepliesAreWhatThePromptsSay) {
  const TrainingCorpus corpus = make_corpus();
  for (const PromptKind& kind : prompt_kinds()) {
    const std::string name = kind.name;
    int64_t given = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SeededRandom random(seed);
      const TrainingPrompt prompt = kind.make({&corpus, count_tokens, 1024}, random);
      given += prompt.given_reply.empty() ? 0 : 1;
      const bool continues = name == "completion" || name == "continuation" || name == "few_shot";
      if (prompt.given_reply.empty() || continues || prompt.answer_prefix.empty()) {
        continue;
      }
      std::string answer = prompt.given_reply;
      for (const auto& [from, to] : {std::pair(", and ", " "), std::pair(", ", " ")}) {
        answer = absl::StrReplaceAll(answer, {{from, to}});
      }
      std::istringstream words(answer.substr(0, answer.rfind('.')));
      for (std::string word; words >> word;) {
        EXPECT_THAT(prompt.text, HasSubstr(word)) << name << ": " << prompt.given_reply;
      }
    }
    if (name == "summary") {
      EXPECT_EQ(given, 0);
    } else {
      EXPECT_GT(given, 10) << name;
    }
  }
}

TEST(TrainingPrompts, ALongerSetBeginsWithTheShorterOne) {
  const TrainingCorpus corpus = make_corpus();
  TrainingMix mix = TrainingMix::parse({{"num_prompts", 20}}, "data").value();
  const auto few = build_training_prompts(corpus, mix, count_tokens);
  mix.num_prompts = 40;
  const auto many = build_training_prompts(corpus, mix, count_tokens);
  std::set<std::string> kinds;
  for (size_t i = 0; i < many.size(); ++i) {
    kinds.insert(many[i].kind);
    if (i < few.size()) {
      EXPECT_EQ(few[i].text, many[i].text);
    }
  }
  EXPECT_GT(kinds.size(), 5U);
  mix.seed = 2;
  EXPECT_NE(build_training_prompts(corpus, mix, count_tokens)[0].text, many[0].text);
}

TEST(TrainingPrompts, WeightsOfUnknownKindsAreRefused) {
  EXPECT_THAT(message_of(TrainingMix::parse({{"weights", {{"fact", 1}}}}, "r.json").status()),
              AllOf(HasSubstr("\"fact\""), HasSubstr("facts")));
  EXPECT_FALSE(TrainingMix::parse({{"weights", {{"facts", 0}}}}, "r.json").ok());
}

TEST(LeakCheck, ASharedPassageIsFoundWhateverItsCaseAndPunctuation) {
  NgramIndex index;
  index.add("one two three four five six seven eight nine ten eleven twelve thirteen fourteen");
  EXPECT_TRUE(index.first_shared(
      "x ONE, two. three\nfour five six seven eight nine ten eleven twelve thirteen y"));
  EXPECT_FALSE(index.first_shared(
      "one two three four five six seven eight nine ten eleven twelve 13 fourteen"));
  EXPECT_FALSE(index.first_shared("one two three"));
}

TEST(LeakCheck, StringsInsideJsonLinesAreIndexed) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "kvlab_leak.jsonl";
  ASSERT_TRUE(write_file(path, R"({"a": [{"b": "a b c d e f g h i j k l m n"}]})").ok());
  NgramIndex index;
  ASSERT_TRUE(index.add_files(path).ok());
  EXPECT_EQ(index.size(), 2U);
}

TEST(InstructionFiles, TuluAndChatQa2LayoutsDropTheLastReply) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "kvlab_instructions.jsonl";
  ASSERT_TRUE(
      write_file(
          path,
          R"({"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"}]}
{"document":"D","messages":[{"role":"user","content":"Q1"},{"role":"assistant","content":"A1"},{"role":"user","content":"Q2"}]}
{"question":"User: D Q Assistant:","answer":"A"}
)")
          .ok());
  const auto prompts = read_instruction_file(path, 512).value();
  ASSERT_EQ(prompts.size(), 3U);
  EXPECT_EQ(prompts[0].text, "Hi");
  EXPECT_EQ(prompts[0].given_reply, "Yes?");
  EXPECT_EQ(prompts[1].text, "D\n\nUser: Q1\n\nAssistant: A1\n\nUser: Q2");
  EXPECT_EQ(prompts[2].given_reply, "A");
  ASSERT_TRUE(write_file(path, R"({"text": "x"})").ok());
  EXPECT_THAT(message_of(read_instruction_file(path, 512).status()), HasSubstr("record 1"));
}

}  // namespace
}  // namespace kvlab
