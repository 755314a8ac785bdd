// Whole corpora and huge words against Hugging Face tokenizers (tests/golden/make_tokens.py).
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/sha256.h"
#include "tests/harness/text/golden_tokens.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

std::vector<std::string> strings_of(const std::filesystem::path& path) {
  std::vector<std::string> strings;
  if (path.extension() == ".inp") {
    constexpr std::string_view kSeparator = "\n__ggml_vocab_test__\n";
    const auto text = read_file(path);
    EXPECT_TRUE(text.ok()) << text.status();
    size_t begin = 0;
    for (size_t at = text->find(kSeparator); at != std::string::npos;
         at = text->find(kSeparator, begin)) {
      strings.push_back(text->substr(begin, at - begin));
      begin = at + kSeparator.size();
    }
    strings.push_back(text->substr(begin));
  } else if (path.extension() == ".jsonl") {
    const auto lines = read_json_lines(path);
    EXPECT_TRUE(lines.ok()) << lines.status();
    for (const Json& line : *lines) {
      append_strings(line, strings);
    }
  } else {
    const auto file = read_json_file(path);
    EXPECT_TRUE(file.ok()) << file.status();
    append_strings(*file, strings);
  }
  return strings;
}

class TokenizerCorpus : public testing::TestWithParam<std::string_view> {};

TEST_P(TokenizerCorpus, EveryStringOfTheTestVectorsAndOfLongBench) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  const auto tokenizer = Tokenizer::load(data / "model_configs" / GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const Json golden = read_golden_tokens("corpus.json");
  ASSERT_GE(golden.at("files").size(), 40U);
  const std::string model(GetParam());
  for (const auto& [name, expected] : golden.at("files").items()) {
    SCOPED_TRACE(name);
    const auto hash = sha256_file(data / name);
    ASSERT_TRUE(hash.ok()) << hash.status();
    ASSERT_EQ(*hash, expected.at("file_sha256").get<std::string>()) << "not the golden file's data";
    const std::vector<std::string> strings = strings_of(data / name);
    EXPECT_EQ(strings.size(), expected.at("strings").get<size_t>());
    EXPECT_EQ(digest(**tokenizer, strings, false), expected.at("models").at(model));
    if (!expected.at("models_special").empty()) {
      EXPECT_EQ(digest(**tokenizer, strings, true), expected.at("models_special").at(model));
    }
  }
}

TEST_P(TokenizerCorpus, TwoMegabytesOfOneCharacter) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  const auto tokenizer = Tokenizer::load(data / "model_configs" / GetParam());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const Json golden = read_golden_tokens("strings.json");
  for (const auto& [character, expected] : golden.at("two_megabytes_of").items()) {
    std::string text;
    for (size_t i = 0; i < 2'000'000 / character.size(); ++i) {
      text += character;
    }
    EXPECT_EQ(digest(**tokenizer, {text}, false), expected.at(std::string(GetParam())))
        << Json(character).dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TokenizerCorpus, testing::ValuesIn(kGoldenModels),
                         [](const auto& model) {
                           std::string name;
                           for (const char c : model.param) {
                             name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace kvlab
