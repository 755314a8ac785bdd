// BPE's fast paths against a slow reference, on random models and words.
#include "harness/text/bpe.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "harness/text/byte_level.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

struct RandomModel {
  Json json;
  std::vector<std::pair<std::string, std::string>> merges;
};

// `alphabet` and a number of random merges of what is there already.
RandomModel random_model(std::mt19937& rng, const std::vector<std::string>& alphabet, int count) {
  RandomModel model;
  std::vector<std::string> tokens = alphabet;
  std::set<std::string> known(tokens.begin(), tokens.end());
  std::set<std::pair<std::string, std::string>> pairs;
  for (int i = 0; i < count; ++i) {
    const std::string left = tokens[rng() % tokens.size()];
    const std::string right = tokens[rng() % tokens.size()];
    if (left.size() + right.size() > 24 || !pairs.emplace(left, right).second) {
      continue;
    }
    model.merges.emplace_back(left, right);
    if (known.insert(left + right).second) {
      tokens.push_back(left + right);
    }
  }
  model.json = {{"vocab", Json::object()}, {"merges", Json::array()}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    model.json["vocab"][tokens[i]] = i;
  }
  for (const auto& [left, right] : model.merges) {
    model.json["merges"].push_back({left, right});
  }
  return model;
}

// The definition: merge the leftmost pair of the lowest rank until none is left.
std::vector<int32_t> reference(const RandomModel& model, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char32_t c : to_code_points(word)) {
    symbols.push_back(to_utf8(std::u32string(1, c)));
  }
  while (true) {
    size_t best = model.merges.size();
    size_t position = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best; ++rank) {
        if (model.merges[rank].first == symbols[i] && model.merges[rank].second == symbols[i + 1]) {
          best = rank;
          position = i;
        }
      }
    }
    if (best == model.merges.size()) {
      break;
    }
    symbols[position] += symbols[position + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(position) + 1);
  }
  std::vector<int32_t> ids;
  for (const std::string& symbol : symbols) {
    ids.push_back(model.json.at("vocab").at(symbol).get<int32_t>());
  }
  return ids;
}

std::string random_word(std::mt19937& rng, const std::vector<std::string>& alphabet, size_t most) {
  std::string word;
  for (size_t i = rng() % (most + 1); i > 0; --i) {
    word += alphabet[rng() % alphabet.size()];
  }
  return word;
}

std::unique_ptr<const Bpe> make(const Json& model) {
  auto bpe = Bpe::from_json(model, "model");
  EXPECT_TRUE(bpe.ok()) << bpe.status();
  return bpe.ok() ? *std::move(bpe) : nullptr;
}

std::vector<int32_t> encode(const Bpe& bpe, std::string_view word) {
  std::vector<int32_t> ids;
  bpe.encode_word(word, ids);
  return ids;
}

// A pair that makes the same token as an older one of the same place may count with the older rank,
// as in Hugging Face tokenizers; models here make every token in one way.
TEST(Bpe, MergesAsTheDefinitionSays) {
  std::mt19937 rng(1);
  const std::vector<std::string> alphabet = {"a", "b", "c", "\u00e9"};
  for (int round = 0; round < 60; ++round) {
    RandomModel model = random_model(rng, alphabet, 30);
    std::set<std::string> made;
    std::erase_if(model.merges,
                  [&](const auto& m) { return !made.insert(m.first + m.second).second; });
    model.json["merges"] = Json::array();
    for (const auto& [left, right] : model.merges) {
      model.json["merges"].push_back({left, right});
    }
    const auto bpe = make(model.json);
    for (int i = 0; i < 50; ++i) {
      const std::string word = random_word(rng, alphabet, 30);
      EXPECT_EQ(encode(*bpe, word), reference(model, word)) << word;
    }
  }
}

TEST(Bpe, BytesGiveWhatTheirCharactersGive) {
  std::mt19937 rng(2);
  std::vector<std::string> alphabet;
  for (int byte = 0; byte < 256; ++byte) {
    alphabet.emplace_back(byte_level_character(static_cast<unsigned char>(byte)));
  }
  for (const bool ignore_merges : {false, true}) {
    RandomModel model = random_model(rng, alphabet, 4000);
    model.json["ignore_merges"] = ignore_merges;
    const auto bpe = make(model.json);
    ASSERT_TRUE(bpe->has_byte_alphabet());
    for (int i = 0; i < 2000; ++i) {
      std::string bytes;
      for (size_t n = rng() % 20; n > 0; --n) {
        bytes.push_back(static_cast<char>(rng() % 8));
      }
      std::vector<int32_t> ids;
      bpe->encode_bytes(bytes, ids);
      EXPECT_EQ(ids, encode(*bpe, to_byte_level(bytes)));
    }
  }
}

TEST(Bpe, WordsThatNoMergeJoinsCanBeEncodedOneByOne) {
  std::mt19937 rng(3);
  const std::string mark = "\u2581";
  const std::vector<std::string> alphabet = {mark, "a", "b", "c"};
  int separating = 0;
  for (int round = 0; round < 400; ++round) {
    const RandomModel model = random_model(rng, alphabet, 12);
    const auto bpe = make(model.json);
    if (!bpe->separates_words()) {
      continue;
    }
    ++separating;
    for (int i = 0; i < 50; ++i) {
      const std::string text = random_word(rng, alphabet, 40);
      std::vector<int32_t> ids;
      size_t begin = 0;
      for (size_t at = 1; at < text.size(); ++at) {
        if (std::string_view(text).substr(at).starts_with(mark) &&
            !std::string_view(text).substr(0, at).ends_with(mark)) {
          bpe->encode_word(std::string_view(text).substr(begin, at - begin), ids);
          begin = at;
        }
      }
      bpe->encode_word(std::string_view(text).substr(begin), ids);
      EXPECT_EQ(ids, encode(*bpe, text)) << text;
    }
  }
  EXPECT_GT(separating, 10);
}

TEST(Bpe, AMergeAcrossAWordsEndForbidsSeparation) {
  const Json vocab = {{"\u2581", 0}, {"a", 1}, {"a\u2581", 2}, {"\u2581\u2581", 3}, {"\u2581a", 4}};
  EXPECT_FALSE(make({{"vocab", vocab}, {"merges", {"a \u2581"}}})->separates_words());
  EXPECT_TRUE(
      make({{"vocab", vocab}, {"merges", {"\u2581 \u2581", "\u2581 a"}}})->separates_words());
}

TEST(ByteLevel, EveryByteHasItsOwnCharacter) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes.push_back(static_cast<char>(byte));
  }
  const std::string spelled = to_byte_level(bytes);
  EXPECT_EQ(from_byte_level(spelled), bytes);
  const std::u32string code_points = to_code_points(spelled);
  EXPECT_EQ(std::set<char32_t>(code_points.begin(), code_points.end()).size(), 256U);
  EXPECT_EQ(to_byte_level(" \n"), "\u0120\u010a");  // as every GPT-2 vocabulary spells them
  EXPECT_FALSE(from_byte_level("a b").has_value());
}

}  // namespace
}  // namespace kvlab
