#include "results/packing.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace kvlab {
namespace {

TEST(Packing, TokenIdsComeBackWhateverTheirSize) {
  const std::vector<int32_t> ids = {
      0, 1, 127, 128, 16383, 16384, 151935, std::numeric_limits<int32_t>::max(), -1};
  const auto back = unpack_token_ids(pack_token_ids(ids));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, ids);
  EXPECT_TRUE(unpack_token_ids("")->empty());
}

TEST(Packing, RandomSelectionsComeBack) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    Selection selection;
    selection.prompt_len = std::uniform_int_distribution<int64_t>(1, 3000)(random);
    const size_t layers = std::uniform_int_distribution<size_t>(1, 5)(random);
    const size_t heads = std::uniform_int_distribution<size_t>(1, 4)(random);
    const double share = std::uniform_real_distribution<>(0, 1)(random);
    selection.kept.resize(layers, std::vector<std::vector<int32_t>>(heads));
    for (auto& layer : selection.kept) {
      for (auto& head : layer) {
        for (int32_t i = 0; i < selection.prompt_len; ++i) {
          if (std::bernoulli_distribution(share)(random)) {
            head.push_back(i);
          }
        }
      }
    }
    const auto back = unpack_selection(pack_selection(selection));
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(back->prompt_len, selection.prompt_len);
    EXPECT_EQ(back->kept, selection.kept);
  }
}

TEST(Packing, DamagedBytesAreAnErrorAndNeverACrash) {
  Selection selection;
  selection.prompt_len = 1000;
  selection.kept = {{{1, 5, 999}, {0}}, {{7}, {}}};
  const std::string good = pack_selection(selection);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(unpack_selection(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(unpack_selection(good + "x").ok());
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = good;
    for (int flips = 0; flips < 3; ++flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto back = unpack_selection(bytes);
    if (back.ok()) {
      for (const auto& layer : back->kept) {
        for (const auto& head : layer) {
          for (const int32_t position : head) {
            ASSERT_LT(position, back->prompt_len);
          }
        }
      }
    }
    (void)unpack_token_ids(bytes);
  }
  EXPECT_FALSE(unpack_token_ids("\xff\xff").ok());
  EXPECT_FALSE(unpack_token_ids(std::string(12, '\xff')).ok());
}

}  // namespace
}  // namespace kvlab
