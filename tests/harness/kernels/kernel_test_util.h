// Random data and comparisons for the kernel tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "harness/kernels/cpu_level.h"
#include "harness/kernels/element.h"
#include "harness/kernels/parallel.h"

namespace kvlab {

// Values of either element type. Rounded to bfloat16 where that is the type, so that `at` is exact.
class Values final {
 public:
  Values(ElementType type, int64_t size) : type_(type), bytes_(size * element_size(type)) {}

  static Values random(ElementType type, int64_t size, std::mt19937_64& random, float spread = 1) {
    Values values(type, size);
    std::normal_distribution<float> normal(0, spread);
    for (int64_t i = 0; i < size; ++i) {
      values.set(i, normal(random));
    }
    return values;
  }

  void set(int64_t index, float value) {
    if (type_ == ElementType::kFloat32) {
      std::memcpy(bytes_.data() + 4 * index, &value, 4);
    } else {
      const BFloat16 rounded = to_bfloat16(value);
      std::memcpy(bytes_.data() + 2 * index, &rounded, 2);
    }
  }
  float at(int64_t index) const {
    if (type_ == ElementType::kFloat32) {
      float value = 0;
      std::memcpy(&value, bytes_.data() + 4 * index, 4);
      return value;
    }
    BFloat16 value;
    std::memcpy(&value, bytes_.data() + 2 * index, 2);
    return to_float(value);
  }

  int64_t size() const { return static_cast<int64_t>(bytes_.size()) / element_size(type_); }
  ElementType type() const { return type_; }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  void* from(int64_t index) { return bytes_.data() + index * element_size(type_); }
  const void* from(int64_t index) const { return bytes_.data() + index * element_size(type_); }
  bool operator==(const Values& other) const { return bytes_ == other.bytes_; }

 private:
  ElementType type_;
  std::vector<char> bytes_;
};

inline int64_t pick(std::mt19937_64& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}
template <typename T>
T pick_of(std::mt19937_64& random, std::initializer_list<T> choices) {
  return *(choices.begin() + pick(random, 0, static_cast<int64_t>(choices.size()) - 1));
}

// Runs a test body at one level, and puts level and threads back.
class LevelGuard final {
 public:
  explicit LevelGuard(CpuLevel level) : level_(cpu_level()), threads_(kernel_threads()) {
    set_cpu_level(level);
  }
  ~LevelGuard() {
    set_cpu_level(level_);
    set_kernel_threads(threads_);
  }
  LevelGuard(const LevelGuard&) = delete;
  LevelGuard& operator=(const LevelGuard&) = delete;

 private:
  CpuLevel level_;
  int threads_;
};

// The levels with code of their own.
inline std::vector<CpuLevel> fast_levels() {
  std::vector<CpuLevel> levels = supported_cpu_levels();
  levels.erase(levels.begin());
  return levels;
}

inline std::string level_test_name(const testing::TestParamInfo<CpuLevel>& info) {
  return std::string(cpu_level_name(info.param));
}

}  // namespace kvlab
