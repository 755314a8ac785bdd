#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "benchmarks/registry.h"
#include "benchmarks/ruler/needle_grid.h"
#include "benchmarks/ruler/ruler_benchmark.h"
#include "benchmarks/ruler/scorer.h"
#include "datasets/free_haystack.h"
#include "datasets/sentences.h"
#include "harness/base/status.h"
#include "tests/benchmarks/ruler/byte_tokenizer.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

std::string error_of(const Json& params) {
  const ByteTokenizer tokenizer;
  const auto samples = RulerBenchmark().load_samples(params, tokenizer, PromptFormat{});
  return samples.ok() ? "no error" : message_of(samples.status());
}

TEST(RulerScore, CountsTheShareOfReferencesOrAnyOfThem) {
  const std::vector<std::string> two = {"Paris", "7654321"};
  EXPECT_EQ(ruler_score(two, false, "it is PARIS").value, 50);
  EXPECT_EQ(ruler_score(two, true, "it is paris").value, 100);
  EXPECT_EQ(ruler_score(two, false, "7654321, paris").value, 100);
  EXPECT_EQ(ruler_score(two, false, "").value, 0);
  EXPECT_EQ(ruler_score(two, true, "london").value, 0);
  EXPECT_EQ(ruler_score(two, false, "").metric, "string_match_all");
  EXPECT_EQ(ruler_score(two, true, "").metric, "string_match_part");
}

TEST(RulerScore, ControlCharactersBecomeNewlinesAndSplitWords) {
  EXPECT_EQ(ruler_score({"ab"}, false, std::string("a\x00b", 3)).value, 0);
  EXPECT_EQ(ruler_score({"a\nb"}, false,
                        "a\x1f"
                        "b")
                .value,
            100);
  EXPECT_EQ(ruler_score({"ÉTÉ"}, false, "l'été").value, 100);
  EXPECT_EQ(ruler_score({"x"}, false, "\xff\xfex").value, 100);
}

TEST(RulerOptions, MistakesAreErrorsThatNameTheKeyAndTheChoices) {
  EXPECT_NE(error_of({{"task", "vt"}}).find("tasks"), std::string::npos);
  EXPECT_NE(error_of({{"tasks", {"vtt"}}}).find("niah_single_1"), std::string::npos);
  EXPECT_NE(error_of({{"tasks", {"vt", "vt"}}}).find("twice"), std::string::npos);
  EXPECT_NE(error_of({{"lengths", {"4096"}}}).find("lengths"), std::string::npos);
  EXPECT_NE(error_of({{"lengths", {7}}}).find("256"), std::string::npos);
  EXPECT_NE(error_of({{"samples", 0}}).find("samples"), std::string::npos);
  EXPECT_NE(error_of({{"seed", -1}}).find("seed"), std::string::npos);
  EXPECT_NE(error_of({{"template", "llama"}}).find("'base'"), std::string::npos);
  EXPECT_NE(error_of({{"essays", "/nowhere"}}).find("essays"), std::string::npos);
  EXPECT_NE(error_of({{"file", "a"}, {"folder", "b"}}).find("only one"), std::string::npos);
  EXPECT_NE(error_of({{"folder", "/nowhere"}}).find("/nowhere"), std::string::npos);
}

TEST(RulerSourcesMissing, ErrorsNameTheOption) {
  setenv("KVLAB_CACHE", testing::TempDir().c_str(), 1);
  EXPECT_NE(error_of({{"tasks", {"qa_1"}}}).find("--squad"), std::string::npos);
  EXPECT_NE(error_of({{"tasks", {"qa_2"}}}).find("--hotpotqa"), std::string::npos);
  EXPECT_NE(error_of({{"tasks", {"cwe"}}}).find("--wordlists"), std::string::npos);
  EXPECT_NE(error_of({{"tasks", {"niah_single_2"}}}).find("--wordlists"), std::string::npos);
  unsetenv("KVLAB_CACHE");
}

TEST(RulerBenchmark, SamplesFromNvidiasFilesRunAsTheyAre) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const ByteTokenizer tokenizer;
  const RulerBenchmark ruler;
  const Json params = {
      {"folder", (shared / "ruler_official").string()}, {"lengths", {4096}}, {"samples", 3}};
  const auto samples = ruler.load_samples(params, tokenizer, PromptFormat{});
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->size(), 39u);
  std::set<std::string> keys;
  for (const Sample& sample : *samples) {
    keys.insert(sample.key);
    EXPECT_EQ(sample.length, 4096);
    EXPECT_LT(sample.question_begin, sample.prompt.size());
    EXPECT_FALSE(sample.answer_prefix.empty());
    const bool needle = sample.task.starts_with("niah");
    EXPECT_EQ(sample.extra.contains("depth"), needle);
    std::string reply;
    for (const std::string& reference : sample.references) {
      reply += reference + "\n";
    }
    EXPECT_EQ(ruler.score(sample, reply)->value, 100);
    EXPECT_EQ(ruler.score(sample, "")->value, 0);
  }
  EXPECT_EQ(keys.size(), samples->size());
}

TEST(RulerBenchmark, OneFileNamesItsTaskItselfOrIsToldIt) {
  const ByteTokenizer tokenizer;
  const std::filesystem::path dir = std::filesystem::path(testing::TempDir()) / "ruler_files";
  std::filesystem::create_directories(dir);
  for (const char* name : {"vt.jsonl", "mine.jsonl"}) {
    std::ofstream(dir / name) << R"({"index": 7, "input": "x\nQuestion: y", "outputs": ["A"]})"
                              << "\n";
  }
  const auto load = [&](const Json& params) {
    return RulerBenchmark().load_samples(params, tokenizer, PromptFormat{});
  };
  const auto named = load({{"file", (dir / "vt.jsonl").string()}});
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->at(0).task, "vt");
  EXPECT_EQ(named->at(0).prompt.substr(named->at(0).question_begin), "Question: y");
  EXPECT_FALSE(load({{"file", (dir / "mine.jsonl").string()}}).ok());
  const auto told = load({{"file", (dir / "mine.jsonl").string()}, {"tasks", {"fwe"}}});
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->at(0).max_new_tokens, 50);

  std::ofstream(dir / "cwe.jsonl") << R"({"input": "x", "outputs": [1]})"
                                   << "\n";
  const auto broken = load({{"file", (dir / "cwe.jsonl").string()}});
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(message_of(broken.status()).find("record 1"), std::string::npos);
}

TEST(RulerBenchmark, ALengthWithoutFilesIsRefused) {
  const std::filesystem::path dir = std::filesystem::path(testing::TempDir()) / "ruler_lengths";
  std::filesystem::remove_all(dir);
  for (const char* place : {"4096/vt", "8192/vt", "8192/fwe"}) {
    std::filesystem::create_directories(dir / place);
    std::ofstream(dir / place / "validation.jsonl") << R"({"input": "x", "outputs": ["A"]})"
                                                    << "\n";
  }
  const ByteTokenizer tokenizer;
  const auto load = [&](Json params) {
    params["folder"] = dir.string();
    return RulerBenchmark().load_samples(params, tokenizer, PromptFormat{});
  };
  const auto message = [&](const Json& params) { return message_of(load(params).status()); };
  EXPECT_EQ(load({{"lengths", {4096, 8192}}, {"tasks", {"vt"}}}).value().size(), 2U);
  EXPECT_EQ(load({{"lengths", {8192}}, {"tasks", {"vt", "fwe"}}}).value().size(), 2U);
  EXPECT_THAT(message({{"lengths", {4096, 16384}}}), testing::HasSubstr("of length 16384"));
  EXPECT_THAT(message({{"lengths", {4096, 8192}}, {"tasks", {"vt", "fwe"}}}),
              testing::HasSubstr("no file of fwe at length 4096"));
}

TEST(RulerBenchmark, FilesWithAndWithoutAnAnswerPrefixAreTwoProtocols) {
  const std::filesystem::path dir = std::filesystem::path(testing::TempDir()) / "ruler_prefixes";
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  const std::string with = R"({"input": "x", "outputs": ["A"], "answer_prefix": " It is"})";
  const std::string without = R"({"input": "x", "outputs": ["A"]})";
  const auto write = [&](const std::string& name, const std::string& lines) {
    std::ofstream(dir / name) << lines << "\n";
  };
  const auto prefix_of = [&] {
    const auto protocol = RulerBenchmark().resolve_protocol({{"folder", dir.string()}});
    return protocol.ok() ? protocol->at("answer_prefix").get<std::string>()
                         : message_of(protocol.status());
  };
  write("vt.jsonl", with);
  EXPECT_EQ(prefix_of(), "begins the reply");
  write("vt.jsonl", without);
  EXPECT_EQ(prefix_of(), "none in the file");
  write("fwe.jsonl", with);
  EXPECT_THAT(prefix_of(), testing::HasSubstr("two protocols"));
  write("fwe.jsonl", without + "\n" + with);
  EXPECT_THAT(prefix_of(), testing::HasSubstr("record 2"));
}

TEST(FreeHaystack, IsTheSameTextEachTimeAndLongEnoughUnderAnotherName) {
  WordLists lists;
  lists.nouns = {"lamp", "harbour", "sock", "ledger"};
  lists.adjectives = {"quiet", "tall"};
  lists.verbs = {"open", "carry"};
  const Haystack haystack = make_free_haystack(lists);
  EXPECT_EQ(haystack.content_hash, make_free_haystack(lists).content_hash);
  EXPECT_GE(haystack.words.size(), 100'000u);
  EXPECT_EQ(haystack.name, "kvlab-prose-1");
  lists.nouns.push_back("kite");
  EXPECT_NE(haystack.content_hash, make_free_haystack(lists).content_hash);
}

TEST(SimpleSentences, EndAtMarksBeforeWhiteSpace) {
  EXPECT_EQ(simple_sentences("  One. Two?  \"Three!\" 3.5 four\nfive.) six"),
            (std::vector<std::string>{"One.", "Two?", "\"Three!\"", "3.5 four\nfive.)", "six"}));
  EXPECT_TRUE(simple_sentences(" \n ").empty());
}

TEST(NeedleGrid, PutsTheNeedleAtItsDepthInPromptsThatFillTheLength) {
  KVLAB_SHARED_DATA_OR_SKIP(shared);
  const ByteTokenizer tokenizer;
  const NeedleGridBenchmark grid;
  const Json params = {{"lengths", {1024, 8192}},
                       {"samples", 2},
                       {"depths", {0, 25, 50, 100}},
                       {"wordlists", (shared / "wordlists").string()},
                       {"essays", (shared / "paul_graham_essays").string()}};
  const auto samples = grid.load_samples(params, tokenizer, PromptFormat{});
  ASSERT_TRUE(samples.ok()) << samples.status();
  ASSERT_EQ(samples->size(), 16u);
  std::set<std::string> keys;
  for (const Sample& sample : *samples) {
    keys.insert(sample.key);
    const int64_t tokens = tokenizer.count(sample.prompt + sample.answer_prefix);
    EXPECT_LE(tokens + sample.max_new_tokens, sample.length);
    EXPECT_GT(tokens + sample.max_new_tokens, sample.length - 400) << sample.key;
    const std::string context = sample.prompt.substr(0, sample.question_begin);
    const double at = static_cast<double>(context.find(sample.references[0]));
    const double depth = 100 * at / static_cast<double>(context.size());
    EXPECT_NEAR(depth, sample.extra["depth"].get<double>(), sample.length > 2000 ? 4 : 16);
    EXPECT_EQ(grid.score(sample, "It is " + sample.references[0])->value, 100);
  }
  EXPECT_EQ(keys.size(), samples->size());
}

TEST(Registry, FindsEveryBenchmarkAndListsThemForAnUnknownName) {
  for (const Benchmark* benchmark : benchmarks()) {
    EXPECT_EQ(find_benchmark(benchmark->name()).value(), benchmark);
    EXPECT_FALSE(benchmark->tasks().empty());
  }
  EXPECT_NE(message_of(find_benchmark("rulr").status()).find("ruler"), std::string::npos);
}

}  // namespace
}  // namespace kvlab
