#include "harness/kernels/own_pool.h"

namespace kvlab::internal {
namespace {

// Spinning covers the gap between the kernels of one decoding step without keeping a core from
// other pools (ATen's) for long.
constexpr int kSpins = 2000;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

OwnPool::OwnPool(int threads) : threads_(threads) {
  for (int thread = 1; thread < threads; ++thread) {
    workers_.emplace_back([this, thread] { work(thread); });
  }
}

OwnPool::~OwnPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void OwnPool::run(int64_t num_tasks, TaskFunction function, void* context) {
  num_tasks_ = num_tasks;
  function_ = function;
  context_ = context;
  next_task_.store(0, std::memory_order_relaxed);
  busy_.store(threads_ - 1, std::memory_order_relaxed);
  {
    // The lock orders this with a worker about to sleep.
    const std::lock_guard lock(mutex_);
    generation_.fetch_add(1, std::memory_order_release);
  }
  if (sleeping_.load(std::memory_order_acquire) > 0) {
    wake_.notify_all();
  }
  take_tasks(0);
  for (int spins = 0; busy_.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < kSpins) {
      pause_cpu();
    } else {
      std::this_thread::yield();
    }
  }
}

void OwnPool::take_tasks(int thread) {
  for (;;) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= num_tasks_) {
      return;
    }
    function_(context_, task, thread);
  }
}

void OwnPool::work(int thread) {
  uint64_t seen = 0;
  for (;;) {
    for (int spins = 0; spins < kSpins; ++spins) {
      if (generation_.load(std::memory_order_acquire) != seen) {
        break;
      }
      pause_cpu();
    }
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      sleeping_.fetch_add(1, std::memory_order_release);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
      sleeping_.fetch_sub(1, std::memory_order_release);
    }
    ++seen;
    if (stop_) {
      return;
    }
    take_tasks(thread);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace kvlab::internal
