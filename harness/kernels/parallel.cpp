#include "harness/kernels/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/base/check.h"

namespace kvlab {
namespace {

constexpr int kMaxThreads = 256;
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

int initial_threads() {
  if (const char* text = std::getenv("KVLAB_THREADS"); text != nullptr) {
    const int threads = std::atoi(text);
    if (threads >= 1) {
      return std::min(threads, kMaxThreads);
    }
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
    return std::clamp(CPU_COUNT(&cpus), 1, kMaxThreads);
  }
  return 1;
}

class Pool final {
 public:
  explicit Pool(int threads) : threads_(threads) {
    for (int thread = 1; thread < threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  }

  ~Pool() {
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

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }

  void run(int64_t num_tasks, internal::TaskFunction function, void* context) {
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

 private:
  void take_tasks(int thread) {
    for (;;) {
      const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
      if (task >= num_tasks_) {
        return;
      }
      function_(context_, task, thread);
    }
  }

  void work(int thread) {
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

  const int threads_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int> busy_{0};
  std::atomic<int64_t> next_task_{0};
  int64_t num_tasks_ = 0;
  internal::TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  bool stop_ = false;
};

std::mutex& pool_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::atomic<int>& wanted_threads() {
  static std::atomic<int> threads{initial_threads()};
  return threads;
}

// Never destroyed: a program may exit while other threads still hold the library.
std::unique_ptr<Pool>& pool() {
  static auto* instance = new std::unique_ptr<Pool>;
  return *instance;
}

}  // namespace

int kernel_threads() { return wanted_threads(); }

void set_kernel_threads(int threads) {
  KVLAB_CHECK(threads >= 1);
  const std::lock_guard lock(pool_mutex());
  wanted_threads() = std::min(threads, kMaxThreads);
  if (pool() != nullptr && pool()->threads() != wanted_threads()) {
    pool().reset();
  }
}

void internal::run_tasks(int64_t num_tasks, TaskFunction function, void* context) {
  // Not owning the lock means that a kernel runs already: below us on this thread, or beside us.
  std::unique_lock lock(pool_mutex(), std::defer_lock);
  static thread_local bool inside = false;
  const bool owner = num_tasks > 1 && !inside && lock.try_lock();
  if (!owner || wanted_threads() == 1) {
    for (int64_t task = 0; task < num_tasks; ++task) {
      function(context, task, 0);
    }
    return;
  }
  if (pool() == nullptr) {
    pool() = std::make_unique<Pool>(wanted_threads());
  }
  inside = true;
  pool()->run(num_tasks, function, context);
  inside = false;
}

}  // namespace kvlab
