// Random choices for training prompts: the same numbers on every platform for a seed (the
// distributions of <random> are not).
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace kvlab {

class SeededRandom final {
 public:
  explicit SeededRandom(uint64_t seed) : engine_(seed) {}

  // Uniform in [0, n); n > 0. The bias of the modulo is below 2^-40 for every n used here.
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  // Uniform in [low, high].
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  // Uniform in [0, 1).
  double unit() { return static_cast<double>(engine_() >> 11U) * 0x1.0p-53; }
  bool chance(double probability) { return unit() < probability; }

  template <typename T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<size_t>(below(static_cast<int64_t>(values.size())))];
  }
  template <typename T>
  void shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<size_t>(below(static_cast<int64_t>(i)))]);
    }
  }
  std::string digits(int64_t count) {
    std::string text(1, static_cast<char>('1' + below(9)));
    while (static_cast<int64_t>(text.size()) < count) {
      text += static_cast<char>('0' + below(10));
    }
    return text;
  }
  std::string from_alphabet(const std::string& alphabet, int64_t count) {
    std::string text;
    for (int64_t i = 0; i < count; ++i) {
      text += alphabet[static_cast<size_t>(below(static_cast<int64_t>(alphabet.size())))];
    }
    return text;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace kvlab
