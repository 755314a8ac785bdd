#include "harness/text/prompt_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/sha256.h"

namespace kvlab {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A byte-level tokenizer without merges: one token a byte, "<s>" in front where `with_bos`.
std::shared_ptr<const Tokenizer> byte_tokenizer(bool with_bos) {
  // GPT-2's visible stand-ins for bytes: printable Latin-1 characters stand for themselves, the
  // others for U+0100 and up.
  Json vocabulary = Json::object();
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    std::string text;
    const int c = itself ? byte : next++;
    if (c < 0x80) {
      text = static_cast<char>(c);
    } else {
      text = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
    }
    vocabulary[text] = byte;
  }
  const auto special = [](int id, const char* text) {
    return Json{{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  };
  Json file = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", Json::array({special(256, "<s>"), special(257, "<end>")})},
               {"normalizer", nullptr},
               {"pre_tokenizer",
                {{"type", "ByteLevel"},
                 {"add_prefix_space", false},
                 {"trim_offsets", true},
                 {"use_regex", false}}},
               {"post_processor", nullptr},
               {"decoder",
                {{"type", "ByteLevel"},
                 {"add_prefix_space", true},
                 {"trim_offsets", true},
                 {"use_regex", true}}},
               {"model",
                {{"type", "BPE"},
                 {"dropout", nullptr},
                 {"unk_token", nullptr},
                 {"continuing_subword_prefix", nullptr},
                 {"end_of_word_suffix", nullptr},
                 {"fuse_unk", false},
                 {"byte_fallback", false},
                 {"ignore_merges", false},
                 {"vocab", vocabulary},
                 {"merges", Json::array()}}}};
  if (with_bos) {
    const Json bos = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
    const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
    file["post_processor"] = {
        {"type", "TemplateProcessing"},
        {"single", Json::array({bos, text})},
        {"pair", Json::array({bos, text, bos, {{"Sequence", {{"id", "B"}, {"type_id", 1}}}}})},
        {"special_tokens",
         {{"<s>",
           {{"id", "<s>"}, {"ids", Json::array({256})}, {"tokens", Json::array({"<s>"})}}}}}};
  }
  const auto dir = std::filesystem::path(testing::TempDir()) / (with_bos ? "bos" : "no_bos");
  EXPECT_TRUE(write_file(dir / "tokenizer.json", dump_json(file)).ok());
  auto tokenizer = Tokenizer::load(dir);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *tokenizer;
}

const Tokenizer& with_bos() {
  static const auto tokenizer = byte_tokenizer(true);
  return *tokenizer;
}

const Tokenizer& without_bos() {
  static const auto tokenizer = byte_tokenizer(false);
  return *tokenizer;
}

PromptFormat format_with(std::string before) {
  PromptFormat format;
  format.before_user = std::move(before);
  format.after_user = "]";
  return format;
}

std::string text_of(const BuiltPrompt& prompt, const Tokenizer& tokenizer = with_bos()) {
  return tokenizer.decode(prompt.token_ids, false);
}

TEST(PromptBuilder, WrapsAndPutsOneBosInFront) {
  const PromptRequest request = {.user_text = "hi", .answer_prefix = "A:"};
  for (const char* before : {"[", "<s>["}) {  // whether the template has a BOS or not
    const auto prompt = build_prompt(request, with_bos(), format_with(before));
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    EXPECT_EQ(text_of(*prompt), "<s>[hi]A:");
    EXPECT_EQ(prompt->facts.leading_bos, 1);
    EXPECT_EQ(prompt->facts.expected_bos, 1);
    EXPECT_TRUE(prompt->facts.has_answer_prefix);
    EXPECT_FALSE(prompt->question_start.has_value());
    EXPECT_EQ(prompt->facts.text_hash, sha256_hex(std::string(before) + "hi]A:"));
  }
}

TEST(PromptBuilder, RawPromptsGetNoTemplate) {
  const auto prompt =
      build_prompt({.user_text = "hi", .answer_prefix = ":", .chat_template = false}, with_bos(),
                   format_with("["));
  EXPECT_EQ(text_of(prompt.value()), "<s>hi:");
  EXPECT_FALSE(prompt->facts.chat_template);
}

TEST(PromptBuilder, TheOfficialDoubleBosHasToBeNamed) {
  const PromptRequest request = {.user_text = "hi", .bos_rule = BosRule::kOfficialDouble};
  const auto doubled = build_prompt(request, with_bos(), format_with("<s>["));
  EXPECT_EQ(text_of(doubled.value()), "<s><s>[hi]");
  EXPECT_EQ(doubled->facts.expected_bos, 2);
  EXPECT_EQ(text_of(build_prompt(request, with_bos(), format_with("[")).value()), "<s>[hi]");
}

TEST(PromptBuilder, RefusesBosTokensItDoesNotExpect) {
  const auto prompt =
      build_prompt({.user_text = "<s><s>hi", .chat_template = false}, with_bos(), {});
  EXPECT_THAT(std::string(prompt.status().message()),
              HasSubstr("starts with 2 BOS tokens, expected 1"));
}

TEST(PromptBuilder, ATextInATemplateGetsNoSecondOne) {
  for (const char* text : {"<s>[hi]", "<end>hi"}) {
    const auto prompt = build_prompt({.user_text = text}, with_bos(), format_with("<s>["));
    EXPECT_THAT(std::string(prompt.status().message()), HasSubstr("\"chat_template\": false"));
    EXPECT_TRUE(build_prompt({.user_text = text, .chat_template = false}, with_bos(), {}).ok());
  }
}

TEST(PromptBuilder, CountsBosTokensInsideTheText) {
  const auto prompt = build_prompt({.user_text = "a<s>b<s>"}, with_bos(), format_with("["));
  EXPECT_EQ(prompt.value().facts.inner_bos, 2);
}

TEST(PromptBuilder, ModelsWithoutBosGetNone) {
  const auto prompt = build_prompt({.user_text = "hi"}, without_bos(), format_with("["));
  EXPECT_EQ(text_of(prompt.value(), without_bos()), "[hi]");
  EXPECT_EQ(prompt->facts.expected_bos, 0);
}

TEST(PromptBuilder, CutsTheMiddleBeforeTheTemplate) {
  // Ten bytes and BOS are 11 tokens; of a limit of 7 the halves are 3 tokens each: BOS, 0, 1 | 789.
  const PromptRequest request = {
      .user_text = "0123456789", .truncation = Truncation::kMiddle, .max_prompt_tokens = 7};
  const auto prompt = build_prompt(request, with_bos(), format_with("["));
  EXPECT_EQ(text_of(prompt.value()), "<s>[01789]");
  EXPECT_TRUE(prompt->facts.truncated);
  EXPECT_EQ(prompt->facts.tokens_before_truncation, 11);
}

TEST(PromptBuilder, CuttingDropsSpecialTokensWrittenOut) {
  const auto prompt = build_prompt(
      {.user_text = "0<end>23456789", .truncation = Truncation::kMiddle, .max_prompt_tokens = 8},
      with_bos(), format_with("["));
  EXPECT_EQ(text_of(prompt.value()), "<s>[026789]");
}

TEST(PromptBuilder, PromptsWithinTheLimitStayAsTheyAre) {
  const auto prompt = build_prompt(
      {.user_text = "0<end>2", .truncation = Truncation::kMiddle, .max_prompt_tokens = 4},
      with_bos(), format_with("["));
  EXPECT_EQ(text_of(prompt.value()), "<s>[0<end>2]");
  EXPECT_FALSE(prompt->facts.truncated);
}

TEST(PromptBuilder, CleansUpSpacesOnlyWhenAsked) {
  PromptRequest request = {.user_text = "a . 6789 ,",
                           .chat_template = false,
                           .truncation = Truncation::kMiddle,
                           .max_prompt_tokens = 10};
  EXPECT_EQ(text_of(build_prompt(request, with_bos(), {}).value()), "<s>a . 789 ,");
  request.clean_up_spaces = true;
  EXPECT_EQ(text_of(build_prompt(request, with_bos(), {}).value()), "<s>a. 789,");
}

TEST(PromptBuilder, SplitsAtTheQuestion) {
  const auto prompt = build_prompt(
      {.user_text = "text? why", .question_begin = 6, .answer_prefix = "A", .split_question = true},
      with_bos(), format_with("["));
  ASSERT_TRUE(prompt.ok()) << prompt.status();
  EXPECT_EQ(text_of(*prompt), "<s>[text? why]A");
  EXPECT_EQ(prompt->question_start, 8);  // BOS, "[", "text? "
  EXPECT_EQ(prompt->token_ids[8], 'w');
}

TEST(PromptBuilder, FindsTheQuestionWhereTheTemplateTrims) {
  PromptFormat format = format_with("[");
  format.trims_user_text = true;
  const auto prompt =
      build_prompt({.user_text = "  text why  ", .question_begin = 7, .split_question = true},
                   with_bos(), format);
  EXPECT_EQ(text_of(prompt.value()), "<s>[text why]");
  EXPECT_EQ(prompt->token_ids.at(static_cast<size_t>(*prompt->question_start)), 'w');
}

TEST(PromptBuilder, AQuestionMaySurviveTruncationOrNot) {
  PromptRequest request = {.user_text = "0123456789why",
                           .question_begin = 10,
                           .truncation = Truncation::kMiddle,
                           .max_prompt_tokens = 8,
                           .split_question = true};
  const auto kept = build_prompt(request, with_bos(), format_with("["));
  EXPECT_EQ(text_of(kept.value()), "<s>[0129why]");
  EXPECT_EQ(kept->token_ids.at(static_cast<size_t>(*kept->question_start)), 'w');
  request.max_prompt_tokens = 4;
  const auto lost = build_prompt(request, with_bos(), format_with("["));
  EXPECT_THAT(std::string(lost.status().message()), HasSubstr("did not survive truncation"));
  request.split_question = false;
  EXPECT_TRUE(build_prompt(request, with_bos(), format_with("[")).ok());
}

TEST(PromptBuilder, AnAbsentQuestionCannotBeKeptApart) {
  const auto prompt =
      build_prompt({.user_text = "text", .question_begin = 4, .split_question = true}, with_bos(),
                   format_with("["));
  EXPECT_THAT(std::string(prompt.status().message()), HasSubstr("no question"));
}

TEST(PromptBuilder, TailTruncationSparesTheQuestionAndWhatFollows) {
  const auto prompt = build_prompt({.user_text = "0123456789why",
                                    .question_begin = 10,
                                    .truncation = Truncation::kTail,
                                    .max_prompt_tokens = 5,
                                    .split_question = true},
                                   with_bos(), format_with("["));
  EXPECT_EQ(text_of(prompt.value()), "<s>[012why]");
  EXPECT_EQ(prompt->question_start, 5);
  EXPECT_TRUE(prompt->facts.truncated);
}

TEST(PromptBuilder, RefusesEmptyPromptsAndImpossibleLimits) {
  EXPECT_THAT(std::string(build_prompt({.user_text = ""}, with_bos(), {}).status().message()),
              HasSubstr("empty"));
  for (const int64_t limit : {-1, 1}) {
    const auto prompt =
        build_prompt({.user_text = "hi", .max_prompt_tokens = limit}, with_bos(), {});
    EXPECT_THAT(std::string(prompt.status().message()), HasSubstr("at least 2"));
  }
}

TEST(PromptBuilder, StopIdsAreTheModelsAndTheLastTokenOfEachText) {
  const std::vector<std::string> texts = {"\n", "ab"};
  const std::vector<int32_t> eos = {257, 10};
  EXPECT_THAT(stop_token_ids(texts, eos, with_bos()).value(), ElementsAre(10, 'b', 257));
  const std::vector<std::string> empty = {""};
  EXPECT_FALSE(stop_token_ids(empty, eos, with_bos()).ok());
}

TEST(PromptBuilder, FactsShowWhereTheTextEnds) {
  const std::string text = std::string(500, 'x') + "é" + std::string(239, 'y');
  const auto prompt =
      build_prompt({.user_text = text, .chat_template = false}, with_bos(), {}).value();
  EXPECT_EQ(prompt.facts.text_tail, std::string(239, 'y'));  // no half of the two-byte letter
  EXPECT_EQ(prompt.facts.leading_bos, 1);
}

}  // namespace
}  // namespace kvlab
