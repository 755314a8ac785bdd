// Malformed and unknown tokenizer.json files: an error that names the part, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/text/regex.h"
#include "harness/text/tokenizer_json.h"

namespace kvlab {
namespace {

using testing::HasSubstr;

Json good_file() {
  return Json::parse(R"({
    "added_tokens": [{"id": 4, "content": "<s>", "special": true}],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": null,
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "<unk>": 3},
              "merges": ["a b"], "unk_token": "<unk>"}})");
}

std::string error_of(const std::string& text) {
  const auto tokenizer = tokenizer_from_json(text, "tokenizer.json");
  return tokenizer.ok() ? "no error" : message_of(tokenizer.status());
}

std::string error_with(const std::string& pointer, const Json& value) {
  Json file = good_file();
  file[Json::json_pointer(pointer)] = value;
  return error_of(file.dump());
}

TEST(TokenizerErrors, TheUnchangedFileIsGood) {
  EXPECT_EQ(error_of(good_file().dump()), "no error");
}

TEST(TokenizerErrors, UnknownKindsAreNamedWithTheKnownOnes) {
  EXPECT_THAT(error_with("/model/type", "Unigram"), HasSubstr("Unigram is not supported"));
  const Json kind = {{"type", "Precompiled"}};
  for (const char* part : {"normalizer", "pre_tokenizer", "decoder", "post_processor"}) {
    const std::string error = error_with(std::string("/") + part, kind);
    EXPECT_THAT(error, HasSubstr(std::string("tokenizer.json: ") + part));
    EXPECT_THAT(error, HasSubstr("the kind Precompiled is not supported (supported: "));
  }
  const Json nested = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}, kind}}};
  EXPECT_THAT(error_with("/normalizer", nested), HasSubstr("normalizer.normalizers[1]"));
}

TEST(TokenizerErrors, NotJsonOrNotAnObject) {
  EXPECT_THAT(error_of(""), HasSubstr("tokenizer.json: not valid JSON"));
  EXPECT_THAT(error_of("{\"model\": {"), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("should be an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("a model in it"));
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(error_of("{\"model\": {\"vocab\": {\"\xFF\": 1}}}"), HasSubstr("not valid JSON"));
}

TEST(TokenizerErrors, VocabularyAndMerges) {
  EXPECT_THAT(error_with("/model/vocab", Json::array()), HasSubstr("vocab should be an object"));
  EXPECT_THAT(error_with("/model/vocab/a", -1), HasSubstr("vocab.a should be an id"));
  EXPECT_THAT(error_with("/model/vocab/a", 1e18), HasSubstr("vocab.a should be an id"));
  EXPECT_THAT(error_with("/model/vocab/a", int64_t{1} << 40), HasSubstr("vocab.a should be an id"));
  EXPECT_THAT(error_with("/model/vocab/a", 1), HasSubstr("both have id 1"));
  EXPECT_THAT(error_with("/model/merges", "a b"), HasSubstr("merges should be a list"));
  EXPECT_THAT(error_with("/model/merges/0", "ab"), HasSubstr("merges[0] should be two tokens"));
  EXPECT_THAT(error_with("/model/merges/0", "a b c"), HasSubstr("merges[0] should be two tokens"));
  EXPECT_THAT(error_with("/model/merges/0", {"a", "b", "c"}), HasSubstr("merges[0] should be"));
  EXPECT_THAT(error_with("/model/merges/0", 7), HasSubstr("merges[0] should be"));
  EXPECT_THAT(error_with("/model/merges/0", "a x"), HasSubstr("x is not in the vocabulary"));
  EXPECT_THAT(error_with("/model/merges/0", "b a"), HasSubstr("make ba, which is not in"));
  EXPECT_THAT(error_with("/model/unk_token", "?"), HasSubstr("unk_token ? is not in"));
  EXPECT_THAT(error_with("/model/dropout", 0.1), HasSubstr("dropout"));
  EXPECT_THAT(error_with("/model/byte_fallback", "yes"), HasSubstr("byte_fallback"));
}

TEST(TokenizerErrors, AddedTokens) {
  EXPECT_THAT(error_with("/added_tokens", "x"), HasSubstr("added_tokens should be a list"));
  EXPECT_THAT(error_with("/added_tokens/0/id", 1), HasSubstr("is the model's token b"));
  EXPECT_THAT(error_with("/added_tokens/0/id", -1), HasSubstr("added_tokens[0].id"));
  EXPECT_THAT(error_with("/added_tokens/0/content", 5), HasSubstr("\"content\""));
  EXPECT_THAT(error_with("/added_tokens/0/content", "a"), HasSubstr("has id 4 here and id 0"));
  EXPECT_THAT(error_with("/added_tokens/1", {{"id", 4}, {"content", "<t>"}}),
              HasSubstr("id 4 is there twice"));
  EXPECT_THAT(error_with("/added_tokens/1", {{"id", 5}, {"content", "<s>"}}),
              HasSubstr("<s> is there twice"));
}

TEST(TokenizerErrors, ComponentsWithBadParameters) {
  EXPECT_THAT(error_with("/normalizer", 3), HasSubstr("\"type\" is missing"));
  EXPECT_THAT(error_with("/normalizer", {{"type", "Sequence"}}), HasSubstr("should be a list"));
  EXPECT_THAT(error_with("/normalizer", {{"type", "Prepend"}}), HasSubstr("\"prepend\""));
  Json split = {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(error_with("/pre_tokenizer", split), HasSubstr("(a is not valid"));
  split["pattern"] = {{"Regex", "\\w+"}};
  EXPECT_THAT(error_with("/pre_tokenizer", split), HasSubstr("\\w are not supported"));
  split["pattern"] = {{"Glob", "*"}};
  EXPECT_THAT(error_with("/pre_tokenizer", split), HasSubstr("pattern should be"));
  split["pattern"] = {{"String", "a"}};
  split["behavior"] = "Sideways";
  EXPECT_THAT(error_with("/pre_tokenizer", split), HasSubstr("but is Sideways"));
  Json metaspace = {{"type", "Metaspace"}, {"replacement", "__"}};
  EXPECT_THAT(error_with("/pre_tokenizer", metaspace), HasSubstr("one character"));
  metaspace = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}};
  EXPECT_THAT(error_with("/decoder", metaspace), HasSubstr("always, first or never"));
  Json deep = {{"type", "NFC"}};
  for (int i = 0; i < 40; ++i) {
    deep = {{"type", "Sequence"}, {"normalizers", {deep}}};
  }
  EXPECT_THAT(error_with("/normalizer", deep), HasSubstr("sequences inside each other"));
}

TEST(TokenizerErrors, Templates) {
  const Json special = {{"<s>", {{"id", "<s>"}, {"ids", {4}}, {"tokens", {"<s>"}}}}};
  Json single = {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}};
  Json processor = {
      {"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", special}};
  EXPECT_THAT(error_with("/post_processor", processor), HasSubstr("has no Sequence"));
  processor["single"].push_back({{"Sequence", {{"id", "A"}}}});
  EXPECT_EQ(error_with("/post_processor", processor), "no error");
  processor["special_tokens"]["<s>"]["ids"] = {"x"};
  EXPECT_THAT(error_with("/post_processor", processor), HasSubstr("should be a list of ids"));
  processor["special_tokens"] = Json::object();
  EXPECT_THAT(error_with("/post_processor", processor), HasSubstr("not in special_tokens"));
  processor["single"].push_back({{"Sequence", {{"id", "A"}}}});
  processor["special_tokens"] = special;
  EXPECT_THAT(error_with("/post_processor", processor), HasSubstr("more than once"));
}

TEST(TokenizerErrors, AMissingFolderOrFileIsNamed) {
  const auto none = Tokenizer::load("/nonexistent/model");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(message_of(none.status()), HasSubstr("/nonexistent/model/tokenizer.json"));
}

TEST(Regex, WhatTheEnginesReadDifferentlyIsRewrittenOrRefused) {
  EXPECT_EQ(*translate_oniguruma("a[b]\\p{L}+"), "a[b]\\p{L}+");
  EXPECT_EQ(*translate_oniguruma("\\s"), R"([\p{Z}\t-\r\x{85}])");
  EXPECT_EQ(*translate_oniguruma("[^\\s]"), R"([^\p{Z}\t-\r\x{85}])");
  EXPECT_EQ(*translate_oniguruma("(?mi:.)"), "(?si:.)");
  EXPECT_EQ(*translate_oniguruma("\\u4e2D"), "\\x{4e2D}");
  for (const char* refused : {"\\w", "[\\w]", "\\bx", "\\h", "[a&&b]", "[a[b]]", "x{1,3}+", "x{,3}",
                              "[\\S]", "\\u12", "(*UTF)x", "\\C", "\\K"}) {
    EXPECT_FALSE(translate_oniguruma(refused).ok()) << refused;
  }
}

}  // namespace
}  // namespace kvlab
