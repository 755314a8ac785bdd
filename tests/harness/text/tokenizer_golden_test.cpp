// The four models' tokenizers against Hugging Face tokenizers' ids (tests/golden/make_tokens.py).
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "tests/harness/text/golden_tokens.h"
#include "tests/support/shared_data.h"

namespace kvlab {
namespace {

std::shared_ptr<const Tokenizer> model_tokenizer(const std::filesystem::path& data,
                                                 std::string_view name) {
  static std::map<std::string, std::shared_ptr<const Tokenizer>, std::less<>> loaded;
  auto& slot = loaded[std::string(name)];
  if (slot == nullptr) {
    auto tokenizer = Tokenizer::load(data / "model_configs" / name);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    slot = tokenizer.ok() ? *tokenizer : nullptr;
  }
  return slot;
}

TEST(TokenizerGolden, HandMadeTextsWithAndWithoutSpecialTokens) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  const Json golden = read_golden_tokens("strings.json");
  for (const std::string_view name : kGoldenModels) {
    SCOPED_TRACE(name);
    const auto tokenizer = model_tokenizer(data, name);
    ASSERT_NE(tokenizer, nullptr);
    for (const Json& entry : golden.at("hand_made")) {
      const auto text = entry.at("text").get<std::string>();
      SCOPED_TRACE(Json(text).dump());
      const Json& expected = entry.at("models").at(std::string(name));
      const auto special_ids = expected.at("special_ids").get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer->encode(text, false), expected.at("ids").get<std::vector<int32_t>>());
      EXPECT_EQ(tokenizer->encode(text, true), special_ids);
      EXPECT_EQ(tokenizer->decode(special_ids, true), expected.at("decoded").get<std::string>());
      EXPECT_EQ(tokenizer->decode(special_ids, false),
                expected.at("decoded_special").get<std::string>());
    }
  }
}

TEST(TokenizerGolden, RandomUnicodeStrings) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  const Json golden = read_golden_tokens("strings.json");
  const auto strings = golden.at("random").get<std::vector<std::string>>();
  const auto block = golden.at("random_block").get<size_t>();
  ASSERT_GE(strings.size(), 1000U);
  for (const std::string_view name : kGoldenModels) {
    const auto tokenizer = model_tokenizer(data, name);
    ASSERT_NE(tokenizer, nullptr);
    for (size_t i = 0; i < strings.size(); i += block) {
      const std::vector<std::string> part(strings.begin() + i, strings.begin() + i + block);
      EXPECT_EQ(digest(*tokenizer, part, false),
                golden.at("random_digests").at(std::string(name))[i / block])
          << name << ", strings from " << i;
    }
  }
}

TEST(TokenizerGolden, ByteLevelTokenizersWithoutNormalizerGiveTheTextBack) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  const Json golden = read_golden_tokens("strings.json");
  for (const std::string_view name : {"SmolLM2-135M-Instruct", "Llama-3.1-8B-Instruct"}) {
    const auto tokenizer = model_tokenizer(data, name);
    ASSERT_NE(tokenizer, nullptr);
    for (const auto& text : golden.at("random").get<std::vector<std::string>>()) {
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false), false), text);
    }
  }
}

TEST(TokenizerGolden, ThreadsSharingATokenizerGetTheSameIds) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  const auto strings =
      read_golden_tokens("strings.json").at("random").get<std::vector<std::string>>();
  const auto tokenizer = model_tokenizer(data, "Qwen3-8B");
  ASSERT_NE(tokenizer, nullptr);
  const Json expected = digest(*tokenizer, strings, false);
  std::vector<Json> found(4);
  std::vector<std::thread> threads;
  for (Json& slot : found) {
    threads.emplace_back([&] { slot = digest(*tokenizer, strings, false); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const Json& slot : found) {
    EXPECT_EQ(slot, expected);
  }
}

TEST(TokenizerGolden, TheDefaultModelHasThePublishedTokenizer) {
  KVLAB_SHARED_DATA_OR_SKIP(data);
  KVLAB_DEFAULT_MODEL_OR_SKIP(dir);
  const auto prepared = Tokenizer::load(dir);
  ASSERT_TRUE(prepared.ok()) << prepared.status();
  const auto published = model_tokenizer(data, "SmolLM2-135M-Instruct");
  ASSERT_NE(published, nullptr);
  EXPECT_EQ((*prepared)->content_hash(), published->content_hash());
}

}  // namespace
}  // namespace kvlab
