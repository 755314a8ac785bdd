// A thread block on the CPU: each phase of a kernel runs thread by thread. Emulates what the
// kernels of harness/kernels/cuda/block.h rely on and nothing else; in another order of threads and
// blocks a kernel that lacks a barrier gives another result.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "harness/base/check.h"
#include "harness/kernels/cuda/block.h"
#include "methods/attention_mass/cuda/score_tile.h"

namespace kvlab {

enum class ThreadOrder { kForward, kBackward, kShuffled };

template <int kThreads>
class HostBlock {
 public:
  // Starts as NaN: nothing may be read before it is written.
  template <class T, int kCount>
  class Private {
   public:
    Private() : values_(kCount) {
      static_assert(std::is_trivially_copyable_v<T>);
      std::memset(static_cast<void*>(values_.data()), 0xff, values_.size() * sizeof(T));
    }
    T& operator[](int index) {
      KVLAB_CHECK(index >= 0 && index < kCount);
      return values_[index];
    }

   private:
    std::vector<T> values_;
  };
  template <class T>
  using PerThread = Private<T, kThreads>;
  template <class T>
  using PerWarp = Private<T, kThreads / 32>;

  HostBlock(Grid index, ThreadOrder order, std::mt19937_64& random)
      : index_(index), order_(order), random_(random) {}

  template <class Body>
  void each_thread(Body&& body) {
    for (const int thread : ordered(kThreads)) {
      body(thread);
    }
  }
  template <class Body>
  void each_warp(Body&& body) {
    for (const int warp : ordered(kThreads / 32)) {
      body(warp);
    }
  }
  int64_t x() const { return index_.x; }
  int64_t y() const { return index_.y; }
  int64_t z() const { return index_.z; }

 private:
  std::vector<int> ordered(int count) {
    std::vector<int> indices(count);
    std::iota(indices.begin(), indices.end(), 0);
    if (order_ == ThreadOrder::kBackward) {
      std::reverse(indices.begin(), indices.end());
    } else if (order_ == ThreadOrder::kShuffled) {
      std::shuffle(indices.begin(), indices.end(), random_);
    }
    return indices;
  }

  Grid index_;
  ThreadOrder order_;
  std::mt19937_64& random_;
};

// As the tensor cores: exact products, float32 sums.
template <int kThreads>
struct TensorStrip<HostBlock<kThreads>> {
  float sums[16][kTileKeys];

  void clear() { std::memset(sums, 0, sizeof(sums)); }
  void multiply_add(const BFloat16* rows, const BFloat16* keys, int stride) {
    for (int row = 0; row < 16; ++row) {
      for (int key = 0; key < kTileKeys; ++key) {
        for (int column = 0; column < 16; ++column) {
          sums[row][key] +=
              to_float(rows[row * stride + column]) * to_float(keys[key * stride + column]);
        }
      }
    }
  }
  void store(float* out, int stride) {
    for (int row = 0; row < 16; ++row) {
      std::copy_n(sums[row], kTileKeys, out + row * stride);
    }
  }
};

// Runs every block of a launch, one after the other.
class HostLauncher {
 public:
  explicit HostLauncher(ThreadOrder order) : order_(order) {}

  template <class Kernel>
  void launch(Grid grid, const typename Kernel::Params& params) {
    KVLAB_CHECK(grid.y <= 65535 && grid.z <= 65535);
    static_assert(Kernel::kSharedBytes <= 48 * 1024);
    std::vector<int64_t> blocks(grid.x * grid.y * grid.z);
    std::iota(blocks.begin(), blocks.end(), 0);
    if (order_ != ThreadOrder::kForward) {
      std::shuffle(blocks.begin(), blocks.end(), random_);
    }
    constexpr std::align_val_t kAlignment{128};
    auto* shared = static_cast<char*>(operator new(Kernel::kSharedBytes, kAlignment));
    for (const int64_t index : blocks) {
      std::memset(shared, 0xff, Kernel::kSharedBytes);  // NaN
      HostBlock<Kernel::kThreads> block(
          {index % grid.x, index / grid.x % grid.y, index / (grid.x * grid.y)}, order_, random_);
      Kernel::run(block, shared, params);
    }
    operator delete(shared, kAlignment);
  }

 private:
  ThreadOrder order_;
  std::mt19937_64 random_{20};
};

}  // namespace kvlab
