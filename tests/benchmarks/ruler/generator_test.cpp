#include "benchmarks/ruler/generator.h"

#include <gtest/gtest.h>

#include <set>

#include "benchmarks/ruler/sample_cache.h"
#include "harness/base/files.h"
#include "harness/base/status.h"
#include "tests/benchmarks/ruler/byte_tokenizer.h"

namespace kvlab {
namespace {

RulerSources small_sources() {
  auto lists = std::make_shared<WordLists>();
  for (int i = 0; i < 6000; ++i) {
    lists->nouns.push_back("noun" + std::to_string(i));
  }
  lists->adjectives = {"far", "far-flung", "green", "old"};
  lists->verbs = {"go", "see"};
  RulerSources sources;
  sources.pairs = std::make_shared<WordPairs>(*lists);
  sources.words = lists;
  auto haystack = std::make_shared<Haystack>();
  for (int i = 0; i < 3000; ++i) {
    haystack->words.push_back(i % 10 == 9 ? "stop." : "word");
  }
  sources.haystack = haystack;
  auto questions = std::make_shared<QuestionSet>();
  questions->name = "squad";
  for (int i = 0; i < 40; ++i) {
    questions->documents.push_back("document " + std::to_string(i) + std::string(200, 'x'));
  }
  for (uint32_t i = 0; i < 4; ++i) {
    questions->questions.push_back({"who?", {"me"}, {i}, {i + 10, i + 20}});
  }
  sources.questions = questions;
  return sources;
}

RulerRequest request_for(std::string_view task, int64_t length, int64_t samples) {
  RulerRequest request;
  request.task = find_ruler_task(task).value();
  request.length = length;
  request.samples = samples;
  return request;
}

TEST(RulerGenerator, NoPromptPassesItsNominalLengthAtAnySize) {
  const ByteTokenizer tokenizer;
  const RulerSources sources = small_sources();
  for (const RulerTask& task : ruler_tasks()) {
    for (const int64_t length : {1024, 2048, 4095, 4096, 5000, 8192}) {
      SCOPED_TRACE(std::string(task.name) + " at " + std::to_string(length));
      if (task.family == RulerFamily::kQuestions && length < 2048) {
        continue;  // ten documents of the small set do not fit
      }
      const auto items = generate_ruler(request_for(task.name, length, 4), sources, tokenizer);
      ASSERT_TRUE(items.ok()) << items.status();
      ASSERT_EQ(items->size(), 4u);
      for (const RulerItem& item : *items) {
        EXPECT_LE(item.length, length);
        EXPECT_EQ(item.length,
                  tokenizer.count(item.input + item.answer_prefix) + task.tokens_to_generate);
        EXPECT_FALSE(item.outputs.empty());
        if (task.family != RulerFamily::kQuestions) {
          EXPECT_NE(item.input.find(item.outputs[0]), std::string::npos);
        }
        EXPECT_LT(ruler_question_begin(task, item.user_text), item.user_text.size());
      }
    }
  }
}

TEST(RulerGenerator, AModelTemplateCountsIntoTheLengthAndWrapsTheInput) {
  const ByteTokenizer tokenizer;
  const RulerSources sources = small_sources();
  PromptFormat format;
  format.before_user = "<user>" + std::string(400, ' ');
  format.after_user = "<reply>";
  for (const char* task : {"vt", "cwe", "fwe", "niah_multikey_3", "qa_1"}) {
    SCOPED_TRACE(task);
    RulerRequest request = request_for(task, 4096, 3);
    const auto base = generate_ruler(request, sources, tokenizer);
    request.prompt_format = format;
    const auto model = generate_ruler(request, sources, tokenizer);
    ASSERT_TRUE(base.ok() && model.ok()) << base.status() << model.status();
    for (size_t i = 0; i < model->size(); ++i) {
      const RulerItem& item = (*model)[i];
      EXPECT_EQ(item.input, format.before_user + item.user_text + format.after_user);
      EXPECT_LE(tokenizer.count(item.input + item.answer_prefix) + request.task->tokens_to_generate,
                4096);
      EXPECT_EQ(item.user_text.find("<user>"), std::string::npos);
    }
  }
}

TEST(RulerGenerator, ALengthThatNothingFitsIsAnErrorAndNotAnEndlessLoop) {
  const ByteTokenizer tokenizer;
  const RulerSources sources = small_sources();
  for (const RulerTask& task : ruler_tasks()) {
    SCOPED_TRACE(task.name);
    const auto items = generate_ruler(request_for(task.name, 160, 1), sources, tokenizer);
    ASSERT_FALSE(items.ok());
    EXPECT_NE(message_of(items.status()).find("choose a larger length"), std::string::npos)
        << items.status();
  }
}

TEST(RulerGenerator, MoreSamplesThanQuestionsIsAnErrorThatSaysHowManyThereAre) {
  const ByteTokenizer tokenizer;
  const auto items = generate_ruler(request_for("qa_1", 4096, 5), small_sources(), tokenizer);
  ASSERT_FALSE(items.ok());
  EXPECT_NE(message_of(items.status()).find("4 questions"), std::string::npos) << items.status();
}

TEST(RulerGenerator, ListsTooShortForCommonWordsAreAnErrorThatNamesTheOption) {
  const ByteTokenizer tokenizer;
  const auto items = generate_ruler(request_for("cwe", 131072, 1), small_sources(), tokenizer);
  ASSERT_FALSE(items.ok());
  EXPECT_NE(message_of(items.status()).find("--wordlists"), std::string::npos) << items.status();
}

TEST(RulerGenerator, LongerSeriesBeginWithTheShorterOnes) {
  const ByteTokenizer tokenizer;
  const RulerSources sources = small_sources();
  for (const RulerTask& task : ruler_tasks()) {
    const auto few = generate_ruler(request_for(task.name, 4096, 2), sources, tokenizer);
    const auto many = generate_ruler(request_for(task.name, 4096, 4), sources, tokenizer);
    ASSERT_TRUE(few.ok() && many.ok());
    for (size_t i = 0; i < few->size(); ++i) {
      EXPECT_EQ((*few)[i].input, (*many)[i].input) << task.name;
    }
  }
}

TEST(WordPairs, EqualTheSortedSetOfAllPairs) {
  WordLists lists;
  lists.adjectives = {"far", "far-flung", "a", "ab", "far", "b-c", "b"};
  lists.nouns = {"x", "flung-x", "c-d", "d", "x", "zebra", "Über"};
  std::set<std::string> all;
  for (const std::string& adjective : lists.adjectives) {
    for (const std::string& noun : lists.nouns) {
      all.insert(adjective + "-" + noun);
    }
  }
  const WordPairs pairs(lists);
  ASSERT_EQ(pairs.size(), all.size());
  size_t i = 0;
  for (const std::string& pair : all) {
    EXPECT_EQ(pairs.at(i++), pair);
  }
}

class SampleCache : public testing::Test {
 protected:
  void SetUp() override {
    dir_ = std::filesystem::path(testing::TempDir()) / "ruler_cache";
    std::filesystem::remove_all(dir_);
    setenv("KVLAB_CACHE", dir_.c_str(), 1);
  }
  void TearDown() override { unsetenv("KVLAB_CACHE"); }
  std::filesystem::path only_file() const {
    return std::filesystem::directory_iterator(dir_ / "data" / "ruler")->path();
  }
  std::filesystem::path dir_;
};

TEST_F(SampleCache, ServesEqualPromptsWithoutCountingAgainAndShorterSeriesToo) {
  const ByteTokenizer tokenizer;
  const auto made = cached_ruler(request_for("vt", 2048, 4), {}, "sources", tokenizer);
  ASSERT_TRUE(made.ok()) << made.status();
  const int64_t counts = tokenizer.counts;
  for (const int64_t samples : {4, 2}) {
    const auto again = cached_ruler(request_for("vt", 2048, samples), {}, "sources", tokenizer);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(tokenizer.counts, counts);
    EXPECT_EQ(ruler_json_lines(*again), ruler_json_lines({made->begin(), made->begin() + samples}));
  }
}

TEST_F(SampleCache, ADifferentTokenizerSourceOrTemplateIsMadeAnew) {
  ByteTokenizer tokenizer;
  RulerRequest request = request_for("vt", 2048, 2);
  const auto made = [&](const std::string& sources) {
    const int64_t before = tokenizer.counts;
    EXPECT_TRUE(cached_ruler(request, {}, sources, tokenizer).ok());
    return tokenizer.counts > before;
  };
  EXPECT_TRUE(made("a"));
  EXPECT_FALSE(made("a"));
  EXPECT_TRUE(made("b"));
  tokenizer.hash = "other";
  EXPECT_TRUE(made("a"));
  request.prompt_format = PromptFormat{};
  EXPECT_TRUE(made("a"));
  request.seed = 43;
  EXPECT_TRUE(made("a"));
}

TEST_F(SampleCache, ADamagedFileIsMadeAnew) {
  const ByteTokenizer tokenizer;
  const RulerRequest request = request_for("niah_multikey_3", 2048, 2);
  const auto made = cached_ruler(request, {}, "sources", tokenizer);
  ASSERT_TRUE(made.ok());
  for (const std::string& damage : {std::string(), std::string("{\n"), std::string("x\ny\n")}) {
    ASSERT_TRUE(write_file(only_file(), damage).ok());
    const auto again = cached_ruler(request, {}, "sources", tokenizer);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ruler_json_lines(*again), ruler_json_lines(*made));
  }
}

}  // namespace
}  // namespace kvlab
