#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

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

// Calls `check(prompt)` for prompts of a kind that have a right answer; returns how many do.
template <typename Check>
int64_t for_given_replies(std::string_view name, const Check& check) {
  static const auto* const corpus = new TrainingCorpus(make_corpus());
  int64_t given = 0;
  for (const PromptKind& kind : prompt_kinds()) {
    for (uint64_t seed = 0; seed < 40 && kind.name == name; ++seed) {
      SeededRandom random(seed);
      const TrainingPrompt prompt = kind.make({corpus, count_tokens, 1024}, random);
      if (!prompt.given_reply.empty()) {
        SCOPED_TRACE(seed);
        check(prompt);
        ++given;
      }
    }
  }
  return given;
}

// "A, B, and C." -> {"A", "B", "C"}
std::vector<std::string> names_of(std::string list) {
  list = list.substr(0, list.rfind('.'));
  list = absl::StrReplaceAll(list, {{", and ", ", "}});
  return absl::StrSplit(absl::StripLeadingAsciiWhitespace(list), ", ");
}

TEST(GivenReplies, ASummaryHasNone) {
  EXPECT_EQ(for_given_replies("summary", [](const TrainingPrompt&) {}), 0);
}

TEST(GivenReplies, BeginAWordOfTheTurnOrGoOnFromItsPrefix) {
  for (const PromptKind& kind : prompt_kinds()) {
    for_given_replies(kind.name, [&](const TrainingPrompt& prompt) {
      const bool space = absl::ascii_isspace(static_cast<unsigned char>(prompt.given_reply[0]));
      if (!prompt.answer_prefix.empty()) {
        EXPECT_TRUE(space);
      } else if (prompt.chat_template && prompt.kind != "continuation") {
        EXPECT_FALSE(space);  // code that goes on may begin with its indentation
      }
    });
  }
}

TEST(GivenReplies, PlantedValuesAreTheAskedSubjects) {
  for (const char* kind : {"facts", "several", "identifiers"}) {
    int64_t checked = 0;
    const int64_t given = for_given_replies(kind, [&](const TrainingPrompt& prompt) {
      if (prompt.answer_prefix.empty()) {
        return;
      }
      // Subjects with a hyphen can be told from the wording around them.
      std::vector<std::string> asked;
      for (const absl::string_view word :
           absl::StrSplit(prompt.answer_prefix, absl::ByAnyChar(" ,:"))) {
        if (absl::StrContains(word, "-")) {
          asked.emplace_back(word);
        }
      }
      const std::vector<std::string> lines = absl::StrSplit(prompt.text, '\n');
      for (const std::string& value : names_of(prompt.given_reply)) {
        EXPECT_TRUE(asked.empty() ||
                    std::any_of(lines.begin(), lines.end() - 1,
                                [&](const auto& line) {
                                  return absl::StrContains(line, value) &&
                                         std::any_of(asked.begin(), asked.end(),
                                                     [&](const std::string& subject) {
                                                       return absl::StrContains(line, subject);
                                                     });
                                }))
            << value;
        checked += asked.empty() ? 0 : 1;
      }
    });
    EXPECT_GT(checked, 10) << kind;
    EXPECT_GT(given, 20) << kind;
  }
}

TEST(GivenReplies, AnExamplesAnswerStandsInTheLastPassage) {
  const int64_t given = for_given_replies("examples", [](const TrainingPrompt& prompt) {
    // Behind the answer of the example before it, where there is one.
    size_t last = 0;
    for (const char* label : {"Document:", "Page:", "Excerpt:"}) {
      const size_t at = prompt.text.rfind(label);
      last = at == std::string::npos ? last : std::max(last, at);
    }
    const absl::string_view answer = absl::StripLeadingAsciiWhitespace(prompt.given_reply);
    EXPECT_THAT(prompt.text.substr(last), HasSubstr(std::string(answer)));
  });
  EXPECT_EQ(given, 40);
}

TEST(GivenReplies, ARecordsValueStandsInTheAskedLine) {
  const int64_t given = for_given_replies("records", [](const TrainingPrompt& prompt) {
    const std::vector<std::string> lines = absl::StrSplit(prompt.text, '\n');
    const std::string& question = lines.back();
    const size_t at = question.rfind(absl::StrContains(question, " for ") ? " for " : " with ");
    std::string wanted = question.substr(question.find(' ', at + 1) + 1);
    wanted.pop_back();
    const std::string value =
        prompt.given_reply.substr(prompt.given_reply.rfind(' ') + 1,
                                  prompt.given_reply.size() - prompt.given_reply.rfind(' ') - 2);
    const auto line = std::find_if(lines.begin(), lines.end(), [&](const std::string& text) {
      return absl::StrContains(text, wanted) && absl::StrContains(text, value);
    });
    EXPECT_LT(line, lines.end() - 1) << wanted << " " << value;
  });
  EXPECT_GT(given, 20);
}

TEST(GivenReplies, CountedWordsComeUpMoreThanAllOthers) {
  const int64_t given = for_given_replies("counts", [](const TrainingPrompt& prompt) {
    if (prompt.answer_prefix.empty()) {
      return;
    }
    std::map<std::string, int64_t> counts;
    for (const auto word : absl::StrSplit(prompt.text, absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
      ++counts[std::string(word)];
    }
    const std::vector<std::string> answer = names_of(prompt.given_reply);
    int64_t fewest = counts[answer.back()];
    for (const auto& [word, count] : counts) {
      if (std::find(answer.begin(), answer.end(), word) == answer.end()) {
        EXPECT_LT(count, fewest) << word;
      }
    }
    for (size_t i = 1; i < answer.size(); ++i) {
      EXPECT_LE(counts[answer[i]], counts[answer[i - 1]]) << answer[i];
    }
  });
  EXPECT_GT(given, 10);
}

TEST(GivenReplies, AliasesAreNamesOfTheText) {
  const int64_t given = for_given_replies("aliases", [](const TrainingPrompt& prompt) {
    for (const std::string& name : names_of(prompt.given_reply)) {
      EXPECT_THAT(prompt.text, HasSubstr(prompt.answer_prefix.empty() ? "" : name));
    }
  });
  EXPECT_GT(given, 20);
}

// Line breaks and all.
TEST(GivenReplies, WhatGoesOnStandsInTheTextAsItIs) {
  EXPECT_GT(for_given_replies("completion",
                              [](const TrainingPrompt& prompt) {
                                EXPECT_THAT(prompt.text, HasSubstr(prompt.given_reply));
                              }),
            10);
  EXPECT_GT(
      for_given_replies(
          "passages",
          [](const TrainingPrompt& prompt) {
            const size_t quote = prompt.text.find("do these words stand: \"");
            if (quote == std::string::npos) {
              EXPECT_THAT(prompt.text, HasSubstr(prompt.given_reply));
              return;
            }
            const size_t begin = prompt.text.find('"', quote) + 1;
            const std::string words = prompt.text.substr(begin, prompt.text.rfind('"') - begin);
            const std::string text =
                absl::StrReplaceAll(prompt.text.substr(0, quote), {{"\n", " "}});
            // The last heading in front of the words has the number.
            const std::string number = prompt.given_reply.substr(prompt.given_reply.rfind(' ') + 1);
            const std::string heading = " " + number.substr(0, number.size() - 1) + "] ";
            bool found = false;  // wherever they stand: a passage may come twice
            for (size_t at = text.find(words); at != std::string::npos;
                 at = text.find(words, at + 1)) {
              const size_t bracket = text.rfind("] ", at);
              found |= bracket != std::string::npos &&
                       absl::EndsWith(text.substr(0, bracket + 2), heading);
            }
            EXPECT_TRUE(found) << words;
          }),
      20);
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
