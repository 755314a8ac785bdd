// The random numbers of CPython's `random` module and of NumPy's legacy generator, draw for draw.
// Generators written in Python are reproduced byte for byte only with both.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvlab {

// MT19937 (Matsumoto and Nishimura, 1998) with both of its published seedings.
class MersenneTwister {
 public:
  void seed_by_number(uint32_t seed);                 // init_genrand: NumPy's legacy seed
  void seed_by_array(std::span<const uint32_t> key);  // init_by_array: CPython's integer seeds
  uint32_t next();

 private:
  static constexpr size_t kSize = 624;
  static constexpr size_t kShift = 397;
  void refill();

  std::array<uint32_t, kSize> state_{};
  size_t position_ = kSize;
};

// CPython 3.11's random.Random(seed) for an integer seed. Later versions draw the same.
class PythonRandom {
 public:
  explicit PythonRandom(uint64_t seed);

  double random();                             // in [0, 1), 53 bits
  uint64_t bits(int count);                    // getrandbits(count), 1 <= count <= 64
  std::pair<uint64_t, uint64_t> bits_128();    // getrandbits(128): high half, low half
  uint64_t below(uint64_t limit);              // in [0, limit), limit > 0
  int64_t randint(int64_t low, int64_t high);  // both ends included

  // choices(alphabet, k=count), joined.
  std::string letters(std::string_view alphabet, size_t count);

  // sample(range(population), count): `count` different numbers in drawing order. The caller
  // checks count <= population, where Python raises ValueError.
  std::vector<size_t> sample(size_t population, size_t count);

  template <typename T>
  const T& choice(const std::vector<T>& items) {
    return items[below(items.size())];
  }

  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i-- > 1;) {
      std::swap(items[i], items[below(i + 1)]);
    }
  }

 private:
  MersenneTwister twister_;
};

// NumPy's np.random.seed(seed) and np.random.randint(low, high): the legacy RandomState.
class NumpyLegacyRandom {
 public:
  explicit NumpyLegacyRandom(uint32_t seed);

  // In [low, high); high - low must fit 32 bits.
  int64_t randint(int64_t low, int64_t high);

 private:
  MersenneTwister twister_;
};

// `items` in the order of random.Random(seed).shuffle.
template <typename T>
void shuffle_with_seed(uint64_t seed, std::vector<T>& items) {
  PythonRandom(seed).shuffle(items);
}

}  // namespace kvlab
