#include "datasets/python_random.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "harness/base/json.h"
#include "harness/base/sha256.h"

namespace kvlab {
namespace {

Json golden() {
  auto json = read_json_file(std::string(KVLAB_TEST_DIR) + "/golden/ruler/random.json");
  EXPECT_TRUE(json.ok()) << json.status();
  return *json;
}

std::string hex128(PythonRandom& random) {
  const auto [high, low] = random.bits_128();
  return fmt::format("{:016x}{:016x}", high, low);
}

// float.hex() of a number in [0, 1).
std::string python_hex(double value) {
  if (value == 0) {
    return "0x0.0p+0";
  }
  const auto bits = std::bit_cast<uint64_t>(value);
  return fmt::format("0x1.{:013x}p{:+d}", bits & 0xfffffffffffff,
                     static_cast<int>(bits >> 52) - 1023);
}

std::string mixed_draws(uint64_t seed) {
  constexpr std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  PythonRandom random(seed);
  std::vector<std::string> parts;
  for (size_t turn = 0; turn < 400; ++turn) {
    parts.push_back(std::to_string(random.bits(static_cast<int>(1 + turn % 64))));
    parts.push_back(std::to_string(random.randint(1'000'000, 9'999'999)));
    parts.push_back(std::to_string(random.below(1 + turn * turn * 977)));
    parts.push_back(python_hex(random.random()));
    parts.push_back(random.letters(kUpper, 1 + turn % 7));
    parts.push_back(fmt::format(
        "{}", fmt::join(random.sample(1 + turn * 3, std::min(turn, 1 + turn * 3)), ",")));
    parts.push_back(fmt::format("{}", fmt::join(random.sample(40, turn % 7), ",")));
    std::vector<size_t> items(turn % 50);
    for (size_t i = 0; i < items.size(); ++i) {
      items[i] = i;
    }
    random.shuffle(items);
    parts.push_back(fmt::format("{}", fmt::join(items, ",")));
    parts.push_back(hex128(random));
  }
  return fmt::format("{}", fmt::join(parts, ";"));
}

TEST(PythonRandom, FirstDrawsEqualCPythons) {
  const Json all = golden();
  ASSERT_FALSE(all["seeds"].empty());
  for (const Json& entry : all["seeds"]) {
    SCOPED_TRACE(entry["seed"]);
    PythonRandom random(std::stoull(entry["seed"].get<std::string>()));
    const Json& first = entry["first"];
    for (const Json& bits : first["bits32"]) {
      EXPECT_EQ(random.bits(32), bits.get<uint64_t>());
    }
    for (const Json& number : first["randint"]) {
      EXPECT_EQ(random.randint(1'000'000, 9'999'999), number.get<int64_t>());
    }
    for (const Json& letters : first["letters"]) {
      EXPECT_EQ(random.letters("abcdefghijklmnopqrstuvwxyz", 6), letters.get<std::string>());
    }
    EXPECT_EQ(random.sample(20, 5), first["sample_pool"].get<std::vector<size_t>>());
    EXPECT_EQ(random.sample(1000, 5), first["sample_set"].get<std::vector<size_t>>());
    EXPECT_EQ(hex128(random), first["bits128"].get<std::string>());
  }
}

TEST(PythonRandom, LongMixedRunsEqualCPythons) {
  const Json all = golden();
  ASSERT_FALSE(all["seeds"].empty());
  for (const Json& entry : all["seeds"]) {
    SCOPED_TRACE(entry["seed"]);
    EXPECT_EQ(sha256_hex(mixed_draws(std::stoull(entry["seed"].get<std::string>()))),
              entry["mixed_sha256"].get<std::string>());
  }
}

TEST(NumpyLegacyRandom, RandintEqualsNumpys) {
  const Json all = golden();
  ASSERT_FALSE(all["numpy_randint"].empty());
  for (const Json& entry : all["numpy_randint"]) {
    SCOPED_TRACE(entry["seed"]);
    NumpyLegacyRandom random(entry["seed"].get<uint32_t>());
    std::vector<int64_t> draws;
    for (int i = 0; i < 1000; ++i) {
      draws.push_back(random.randint(10000, 99999));
    }
    for (size_t i = 0; i < entry["first"].size(); ++i) {
      EXPECT_EQ(draws[i], entry["first"][i].get<int64_t>());
    }
    EXPECT_EQ(sha256_hex(fmt::format("{}", fmt::join(draws, ","))),
              entry["sha256"].get<std::string>());
  }
}

TEST(NumpyLegacyRandom, ARangeOfOneNumberDrawsNothing) {
  NumpyLegacyRandom random(42);
  NumpyLegacyRandom same(42);
  EXPECT_EQ(random.randint(7, 8), 7);
  EXPECT_EQ(random.randint(0, 1000), same.randint(0, 1000));
}

}  // namespace
}  // namespace kvlab
