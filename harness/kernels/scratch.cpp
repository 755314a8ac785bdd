#include "harness/kernels/scratch.h"

#include <cstdlib>
#include <memory>

#include "harness/base/check.h"

namespace kvlab {
namespace {

constexpr int kSlots = 4;

struct Free {
  void operator()(void* pointer) const { std::free(pointer); }
};

struct Buffer {
  std::unique_ptr<void, Free> data;
  size_t bytes = 0;
};

}  // namespace

void* thread_scratch(int slot, size_t bytes) {
  static thread_local Buffer buffers[kSlots];
  KVLAB_CHECK(slot >= 0 && slot < kSlots);
  Buffer& buffer = buffers[slot];
  if (buffer.bytes < bytes || buffer.data == nullptr) {
    const size_t rounded = (bytes + 4096) / 4096 * 4096;
    buffer.data.reset();
    buffer.data.reset(std::aligned_alloc(64, rounded));
    KVLAB_CHECK(buffer.data != nullptr);
    buffer.bytes = rounded;
  }
  return buffer.data.get();
}

}  // namespace kvlab
