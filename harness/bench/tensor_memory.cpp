#include "harness/bench/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>

namespace kvlab {
namespace {

// LibTorch reports every allocation and release to the "profiler state" of the thread.
class Counter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* pointer, int64_t size, size_t /*total_allocated*/,
                         size_t /*total_reserved*/, c10::Device /*device*/) override {
    const std::scoped_lock lock(mutex_);
    if (size > 0) {
      sizes_[pointer] = size;
      bytes_ += size;
      peak_ = std::max(peak_, bytes_);
      return;
    }
    const auto known = sizes_.find(pointer);
    if (known != sizes_.end()) {
      bytes_ -= known->second;
      sizes_.erase(known);
    }
  }
  bool memoryProfilingEnabled() const override { return true; }

  int64_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }
  int64_t peak() const {
    const std::scoped_lock lock(mutex_);
    return peak_;
  }
  void restart_peak() {
    const std::scoped_lock lock(mutex_);
    peak_ = bytes_;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, int64_t> sizes_;
  int64_t bytes_ = 0;
  int64_t peak_ = 0;
};

}  // namespace

struct TensorMemory::Impl {
  std::shared_ptr<Counter> counter = std::make_shared<Counter>();
  c10::DebugInfoGuard guard{c10::DebugInfoKind::PROFILER_STATE, counter};
};

TensorMemory::TensorMemory() : impl_(std::make_unique<Impl>()) {}
TensorMemory::~TensorMemory() = default;

int64_t TensorMemory::bytes() const { return impl_->counter->bytes(); }
int64_t TensorMemory::peak() const { return impl_->counter->peak(); }
void TensorMemory::restart_peak() { impl_->counter->restart_peak(); }

}  // namespace kvlab
