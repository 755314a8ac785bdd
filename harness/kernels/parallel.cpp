#include "harness/kernels/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

#include "harness/base/check.h"
#include "harness/kernels/environment.h"
#include "harness/kernels/own_pool.h"
#if defined(KVLAB_OPENMP)
#include "harness/kernels/openmp_pool.h"
#endif

namespace kvlab {
namespace {

int initial_threads() {
  if (const auto threads = threads_from_environment()) {
    return *threads;
  }
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) {
    return std::clamp(CPU_COUNT(&cpus), 1, kMaxThreads);
  }
  return 1;
}

ThreadPool initial_pool() {
#if defined(KVLAB_OPENMP)
  return thread_pool_from_environment().value_or(ThreadPool::kOwn);
#else
  return ThreadPool::kOwn;
#endif
}

// Held while a kernel runs.
std::mutex& run_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::atomic<int>& wanted_threads() {
  static std::atomic<int> threads{initial_threads()};
  return threads;
}

std::atomic<ThreadPool>& wanted_pool() {
  static std::atomic<ThreadPool> pool{initial_pool()};
  return pool;
}

// Never destroyed: a program may exit while other threads still hold the library.
std::unique_ptr<internal::OwnPool>& own_pool() {
  static auto* instance = new std::unique_ptr<internal::OwnPool>;
  return *instance;
}

// A call's tasks, the first exception of which ends it.
class Tasks final {
 public:
  Tasks(internal::TaskFunction function, void* context) : function_(function), context_(context) {}

  static void run(void* tasks, int64_t task, int thread) {
    static_cast<Tasks*>(tasks)->run_one(task, thread);
  }

  void rethrow() const {
    if (failure_ != nullptr) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  void run_one(int64_t task, int thread) {
    if (failed_.load(std::memory_order_relaxed)) {
      return;
    }
    try {
      function_(context_, task, thread);
    } catch (...) {
      if (!failed_.exchange(true)) {
        failure_ = std::current_exception();
      }
    }
  }

  internal::TaskFunction function_;
  void* context_;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace

int kernel_threads() { return wanted_threads(); }

void set_kernel_threads(int threads) {
  KVLAB_CHECK(threads >= 1);
  const std::lock_guard lock(run_mutex());
  wanted_threads() = std::min(threads, kMaxThreads);
  if (own_pool() != nullptr && own_pool()->threads() != wanted_threads()) {
    own_pool().reset();
  }
}

ThreadPool kernel_thread_pool() { return wanted_pool(); }

void set_kernel_thread_pool(ThreadPool pool) {
  const std::lock_guard lock(run_mutex());
  own_pool().reset();
#if defined(KVLAB_OPENMP)
  wanted_pool() = pool;
#else
  static_cast<void>(pool);
#endif
}

void internal::run_tasks(int64_t num_tasks, TaskFunction function, void* context) {
  // Not owning the lock means that a kernel runs already: below us on this thread, or beside us.
  std::unique_lock lock(run_mutex(), std::defer_lock);
  static thread_local bool inside = false;
  const bool owner = num_tasks > 1 && !inside && lock.try_lock();
  if (!owner || wanted_threads() == 1) {
    for (int64_t task = 0; task < num_tasks; ++task) {
      function(context, task, 0);
    }
    return;
  }
  inside = true;
  Tasks tasks(function, context);
#if defined(KVLAB_OPENMP)
  if (wanted_pool() == ThreadPool::kShared) {
    run_on_openmp(wanted_threads(), num_tasks, &Tasks::run, &tasks);
    inside = false;
    tasks.rethrow();
    return;
  }
#endif
  if (own_pool() == nullptr) {
    own_pool() = std::make_unique<OwnPool>(wanted_threads());
  }
  own_pool()->run(num_tasks, &Tasks::run, &tasks);
  inside = false;
  tasks.rethrow();
}

}  // namespace kvlab
