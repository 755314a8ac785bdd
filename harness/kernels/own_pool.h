// A small persistent pool of threads of our own: the default.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/kernels/parallel.h"

namespace kvlab::internal {

class OwnPool final {
 public:
  explicit OwnPool(int threads);  // the calling one included
  ~OwnPool();
  OwnPool(const OwnPool&) = delete;
  OwnPool& operator=(const OwnPool&) = delete;

  int threads() const { return threads_; }
  void run(int64_t num_tasks, TaskFunction function, void* context);

 private:
  void take_tasks(int thread);
  void work(int thread);

  const int threads_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int> busy_{0};
  std::atomic<int64_t> next_task_{0};
  int64_t num_tasks_ = 0;
  TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
};

}  // namespace kvlab::internal
