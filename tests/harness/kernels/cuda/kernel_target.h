// Where a CUDA kernel's test runs: emulated on the CPU in one of three orders, or on the GPU.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "tests/harness/kernels/cuda/host_block.h"
#if defined(KVLAB_CUDA_KERNELS)
#include <cuda_runtime_api.h>

#include "harness/kernels/cuda/cuda_device.h"
#endif

namespace kvlab {

enum class Target { kForward, kBackward, kShuffled, kGpu };

// Memory the kernel reads and writes: on the device, or aligned and exactly as large on the host.
class TargetMemory final {
 public:
  explicit TargetMemory(Target target) : on_gpu_(target == Target::kGpu) {}
  ~TargetMemory() {
    for (void* pointer : pointers_) {
      if (on_gpu_) {
#if defined(KVLAB_CUDA_KERNELS)
        cudaFree(pointer);
#endif
      } else {
        operator delete(pointer, kAlignment);
      }
    }
  }
  TargetMemory(const TargetMemory&) = delete;
  TargetMemory& operator=(const TargetMemory&) = delete;

  // A copy of `bytes` bytes at `from`; null: filled with 0xff.
  void* put(const void* from, int64_t bytes) {
    if (bytes == 0) {
      return nullptr;
    }
    void* pointer = nullptr;
    if (on_gpu_) {
#if defined(KVLAB_CUDA_KERNELS)
      EXPECT_EQ(cudaMalloc(&pointer, bytes), cudaSuccess);
      EXPECT_EQ(from == nullptr ? cudaMemset(pointer, 0xff, bytes)
                                : cudaMemcpy(pointer, from, bytes, cudaMemcpyHostToDevice),
                cudaSuccess);
#endif
    } else {
      pointer = operator new(bytes, kAlignment);
      from == nullptr ? std::memset(pointer, 0xff, bytes) : std::memcpy(pointer, from, bytes);
    }
    pointers_.push_back(pointer);
    return pointer;
  }
  template <typename T>
  T* put(const std::vector<T>& values) {
    return static_cast<T*>(put(values.data(), static_cast<int64_t>(values.size() * sizeof(T))));
  }
  void get(void* to, const void* from, int64_t bytes) {
    if (on_gpu_) {
#if defined(KVLAB_CUDA_KERNELS)
      EXPECT_EQ(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), cudaSuccess);
#endif
    } else if (bytes > 0) {
      std::memcpy(to, from, bytes);
    }
  }

 private:
  static constexpr std::align_val_t kAlignment{16};
  bool on_gpu_;
  std::vector<void*> pointers_;
};

// A test over all targets. Without a GPU its Gpu instances skip, or with KVLAB_REQUIRE_GPU fail.
class TargetTest : public testing::TestWithParam<Target> {
 protected:
  void SetUp() override {
    if (!on_gpu()) {
      return;
    }
#if defined(KVLAB_CUDA_KERNELS)
    const std::optional<std::string> reason = cuda_unavailable_reason();
#else
    const std::optional<std::string> reason = "built without nvcc (KVLAB_CUDA_KERNELS=OFF)";
#endif
    if (reason && std::getenv("KVLAB_REQUIRE_GPU") != nullptr) {
      FAIL() << "KVLAB_REQUIRE_GPU is set: " << *reason;
    }
    if (reason) {
      GTEST_SKIP() << "needs a GPU: " << *reason;
    }
  }
  bool on_gpu() const { return GetParam() == Target::kGpu; }
  HostLauncher launcher() const {
    return HostLauncher(GetParam() == Target::kBackward   ? ThreadOrder::kBackward
                        : GetParam() == Target::kShuffled ? ThreadOrder::kShuffled
                                                          : ThreadOrder::kForward);
  }
};

inline std::string target_name(const testing::TestParamInfo<Target>& info) {
  switch (info.param) {
    case Target::kForward:
      return "EmulatedForward";
    case Target::kBackward:
      return "EmulatedBackward";
    case Target::kShuffled:
      return "EmulatedShuffled";
    case Target::kGpu:
      return "Gpu";
  }
  return "";
}

inline auto all_targets() {
  return testing::Values(Target::kForward, Target::kBackward, Target::kShuffled, Target::kGpu);
}

}  // namespace kvlab
