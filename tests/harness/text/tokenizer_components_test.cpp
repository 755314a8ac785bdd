// Small tokenizers that cover every component, against Hugging Face tokenizers' ids and texts
// (tests/golden/make_tokens.py).
#include <gtest/gtest.h>

#include "harness/text/tokenizer_json.h"
#include "tests/harness/text/golden_tokens.h"

namespace kvlab {
namespace {

std::string whole_file(const Json& golden, const Json& test_case) {
  Json file = test_case.at("parts");
  file["model"] = golden.at("models").at(test_case.at("model").get<std::string>());
  file["model"].update(test_case.at("model_patch"));
  return file.dump();
}

TEST(TokenizerComponents, EveryComponentGivesHuggingFacesIdsAndTexts) {
  const Json golden = read_golden_tokens("components.json");
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  ASSERT_GT(golden.at("cases").size(), 70U);
  for (const Json& test_case : golden.at("cases")) {
    SCOPED_TRACE(test_case.at("name").get<std::string>());
    const auto tokenizer = tokenizer_from_json(whole_file(golden, test_case), "golden");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    for (size_t i = 0; i < texts.size(); ++i) {
      SCOPED_TRACE(Json(texts[i]).dump());
      const auto ids = test_case.at("ids")[i].get<std::vector<int32_t>>();
      EXPECT_EQ((*tokenizer)->encode(texts[i], true), ids);
      EXPECT_EQ((*tokenizer)->decode(ids, true), test_case.at("decoded")[i].get<std::string>());
      EXPECT_EQ((*tokenizer)->decode(ids, false),
                test_case.at("decoded_special")[i].get<std::string>());
      EXPECT_EQ((*tokenizer)->count(texts[i]),
                static_cast<int64_t>((*tokenizer)->encode(texts[i], false).size()));
    }
  }
}

TEST(TokenizerComponents, TokensIdsAndSpecialTokensAreKnownByName) {
  const Json golden = read_golden_tokens("components.json");
  for (const Json& test_case : golden.at("cases")) {
    if (test_case.at("name") != "llama 2 style, fallback, fuse_unk True") {
      continue;
    }
    const auto loaded = tokenizer_from_json(whole_file(golden, test_case), "golden");
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    const Tokenizer& tokenizer = **loaded;
    const auto& vocab = golden.at("models").at("fallback").at("vocab");
    EXPECT_EQ(tokenizer.vocab_size(), static_cast<int32_t>(vocab.size()));
    EXPECT_EQ(tokenizer.bos_id(), vocab.at("<s>").get<int32_t>());
    EXPECT_EQ(tokenizer.token_id("<0x41>"), vocab.at("<0x41>").get<int32_t>());
    EXPECT_FALSE(tokenizer.token_id("no such token").has_value());
    EXPECT_TRUE(tokenizer.is_special(vocab.at("</s>").get<int32_t>()));
    EXPECT_FALSE(tokenizer.is_special(vocab.at("<0x41>").get<int32_t>()));
    EXPECT_FALSE(tokenizer.is_special(-1));
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{-5, 1 << 30}, false), "");
    return;
  }
  FAIL() << "the case is missing from components.json";
}

TEST(TokenizerComponents, InvalidUtf8IsReadAsReplacementCharacters) {
  const Json golden = read_golden_tokens("components.json");
  const auto tokenizer = tokenizer_from_json(whole_file(golden, golden.at("cases")[0]), "golden");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::string bad = "the \xFF\xE4\xB8 cat\xC0\xAF";
  const std::string repaired = "the \uFFFD\uFFFD cat\uFFFD\uFFFD";
  EXPECT_EQ((*tokenizer)->encode(bad, false), (*tokenizer)->encode(repaired, false));
  EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode(bad, false), false), repaired);
}

}  // namespace
}  // namespace kvlab
