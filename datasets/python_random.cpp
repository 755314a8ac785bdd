#include "datasets/python_random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "harness/base/check.h"

namespace kvlab {

void MersenneTwister::seed_by_number(uint32_t seed) {
  state_[0] = seed;
  for (uint32_t i = 1; i < kSize; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  }
  position_ = kSize;
}

void MersenneTwister::seed_by_array(std::span<const uint32_t> key) {
  seed_by_number(19650218u);
  size_t i = 1;
  size_t j = 0;
  const auto step = [&] {
    if (++i == kSize) {
      state_[0] = state_[kSize - 1];
      i = 1;
    }
  };
  const auto mixed = [&] { return state_[i - 1] ^ (state_[i - 1] >> 30); };
  for (size_t n = std::max(kSize, key.size()); n > 0; --n) {
    state_[i] = (state_[i] ^ (mixed() * 1664525u)) + key[j] + static_cast<uint32_t>(j);
    step();
    j = (j + 1) % key.size();
  }
  for (size_t n = kSize - 1; n > 0; --n) {
    state_[i] = (state_[i] ^ (mixed() * 1566083941u)) - static_cast<uint32_t>(i);
    step();
  }
  state_[0] = 0x80000000u;
  position_ = kSize;
}

void MersenneTwister::refill() {
  for (size_t i = 0; i < kSize; ++i) {
    const uint32_t joined = (state_[i] & 0x80000000u) | (state_[(i + 1) % kSize] & 0x7fffffffu);
    const uint32_t twist = (joined & 1u) != 0 ? 0x9908b0dfu : 0u;
    state_[i] = state_[(i + kShift) % kSize] ^ (joined >> 1) ^ twist;
  }
  position_ = 0;
}

uint32_t MersenneTwister::next() {
  if (position_ == kSize) {
    refill();
  }
  uint32_t value = state_[position_++];
  value ^= value >> 11;
  value ^= (value << 7) & 0x9d2c5680u;
  value ^= (value << 15) & 0xefc60000u;
  return value ^ (value >> 18);
}

PythonRandom::PythonRandom(uint64_t seed) {
  const std::array<uint32_t, 2> words = {static_cast<uint32_t>(seed),
                                         static_cast<uint32_t>(seed >> 32)};
  twister_.seed_by_array(std::span(words).first(words[1] != 0 ? 2 : 1));
}

double PythonRandom::random() {
  const uint32_t high = twister_.next() >> 5;
  const uint32_t low = twister_.next() >> 6;
  return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

uint64_t PythonRandom::bits(int count) {
  KVLAB_CHECK(count >= 1 && count <= 64);
  if (count <= 32) {
    return twister_.next() >> (32 - count);
  }
  const uint64_t low = twister_.next();  // the first word drawn is the least significant
  const uint64_t high = twister_.next() >> (64 - count);
  return (high << 32) | low;
}

std::pair<uint64_t, uint64_t> PythonRandom::bits_128() {
  const uint64_t low = bits(64);
  const uint64_t high = bits(64);
  return {high, low};
}

uint64_t PythonRandom::below(uint64_t limit) {
  KVLAB_CHECK(limit > 0);
  const int width = static_cast<int>(std::bit_width(limit));
  uint64_t value = bits(width);
  while (value >= limit) {
    value = bits(width);
  }
  return value;
}

int64_t PythonRandom::randint(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
}

std::string PythonRandom::letters(std::string_view alphabet, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    const double scaled = random() * static_cast<double>(alphabet.size());
    text += alphabet[static_cast<size_t>(scaled)];
  }
  return text;
}

std::vector<size_t> PythonRandom::sample(size_t population, size_t count) {
  KVLAB_CHECK(count <= population);
  std::vector<size_t> drawn(count);
  // CPython copies small populations to a pool and remembers a set of numbers for large ones;
  // the two draw differently.
  double pool_limit = 21;
  if (count > 5) {
    const double log4 = std::log(static_cast<double>(count * 3)) / std::log(4.0);
    pool_limit += std::pow(4.0, std::ceil(log4));
  }
  if (static_cast<double>(population) <= pool_limit) {
    std::vector<size_t> pool(population);
    for (size_t i = 0; i < population; ++i) {
      pool[i] = i;
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t j = below(population - i);
      drawn[i] = pool[j];
      pool[j] = pool[population - i - 1];
    }
    return drawn;
  }
  std::unordered_set<size_t> seen;
  for (size_t& number : drawn) {
    number = below(population);
    while (!seen.insert(number).second) {
      number = below(population);
    }
  }
  return drawn;
}

NumpyLegacyRandom::NumpyLegacyRandom(uint32_t seed) { twister_.seed_by_number(seed); }

int64_t NumpyLegacyRandom::randint(int64_t low, int64_t high) {
  KVLAB_CHECK(low < high && high - low <= int64_t{0xffffffff});
  const auto range = static_cast<uint32_t>(high - low - 1);  // the largest offset, inclusive
  if (range == 0) {
    return low;
  }
  const uint32_t mask = ~uint32_t{0} >> std::countl_zero(range);
  uint32_t offset = twister_.next() & mask;
  while (offset > range) {
    offset = twister_.next() & mask;
  }
  return low + offset;
}

}  // namespace kvlab
