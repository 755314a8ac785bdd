// Bytes of tensors that exist, counted at LibTorch's allocators, CPU and CUDA alike: exact, and the
// same on every machine. Scratch of the raw-pointer kernels and the allocators' own overhead are
// not in it; resident_bytes() has those.
#pragma once

#include <cstdint>
#include <memory>

namespace kvlab {

// Counts from its construction to its destruction, in the thread that made it. Tensors made before
// count as nothing, also when they go.
class TensorMemory final {
 public:
  TensorMemory();
  ~TensorMemory();
  TensorMemory(const TensorMemory&) = delete;
  TensorMemory& operator=(const TensorMemory&) = delete;

  int64_t bytes() const;  // now
  int64_t peak() const;   // most since construction or restart_peak()
  void restart_peak();    // the peak starts from the bytes that are there now

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kvlab
