#include "harness/kernels/own_pool.h"

#include <chrono>

namespace kvlab::internal {
namespace {

// Spinning covers the gaps between the kernels of a layer, scoring and choosing among them, without
// keeping a core from other pools (ATen's) for long. Waking a sleeper costs the caller some 15 us.
constexpr std::chrono::microseconds kSpinFor{200};
constexpr int kPausesPerLook = 64;  // at the clock

// Layout of state_: workers in the lowest 16 bits, then kOpen, then the job's number.
constexpr uint64_t kOpen = 1U << 16U;
constexpr uint64_t kWorkers = kOpen - 1;
constexpr unsigned kJobShift = 17;

uint64_t job_of(uint64_t state) { return state >> kJobShift; }

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// True once `done()` is, false when it has not become so for kSpinFor.
template <typename Done>
bool spin_until(const Done& done) {
  const auto give_up = std::chrono::steady_clock::now() + kSpinFor;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (done()) {
        return true;
      }
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  return false;
}

bool takes_workers(uint64_t state, uint64_t last_job) {
  return (state & kOpen) != 0 && job_of(state) != last_job;
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
  const uint64_t job = job_of(state_.load(std::memory_order_relaxed)) + 1;
  {
    // The lock orders this with a worker about to sleep.
    const std::lock_guard lock(mutex_);
    state_.store(job << kJobShift | kOpen, std::memory_order_release);
  }
  if (sleeping_.load(std::memory_order_acquire) > 0) {
    wake_.notify_all();
  }
  take_tasks(0);
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  const auto alone = [this] { return (state_.load(std::memory_order_acquire) & kWorkers) == 0; };
  if (!spin_until(alone)) {
    while (!alone()) {
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

// Until there is another job, which may be over by then.
void OwnPool::sleep_through(uint64_t job) {
  std::unique_lock lock(mutex_);
  sleeping_.fetch_add(1, std::memory_order_release);
  wake_.wait(lock, [&] { return stop_ || job_of(state_.load(std::memory_order_acquire)) != job; });
  sleeping_.fetch_sub(1, std::memory_order_release);
}

void OwnPool::work(int thread) {
  uint64_t last_job = 0;
  while (!stop_) {
    uint64_t state = 0;
    const bool asked = spin_until([&] {
      state = state_.load(std::memory_order_acquire);
      return takes_workers(state, last_job);
    });
    if (!asked) {
      sleep_through(job_of(state));
      continue;
    }
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      last_job = job_of(state);
      take_tasks(thread);
      state_.fetch_sub(1, std::memory_order_release);
    }
  }
}

}  // namespace kvlab::internal
