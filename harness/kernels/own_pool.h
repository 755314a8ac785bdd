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
  // Returns when every task has run. Workers that wake up too late for any are not waited for.
  void run(int64_t num_tasks, TaskFunction function, void* context);

 private:
  void take_tasks(int thread);
  void work(int thread);
  void sleep_through(uint64_t job);

  const int threads_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  // The job's number, whether it takes workers (kOpen), and how many are in it.
  std::atomic<uint64_t> state_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int64_t> next_task_{0};
  int64_t num_tasks_ = 0;
  TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  std::atomic<bool> stop_{false};
};

}  // namespace kvlab::internal
