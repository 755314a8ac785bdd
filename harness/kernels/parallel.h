// The kernels' threads.
#pragma once

#include <cstdint>
#include <type_traits>

namespace kvlab {

constexpr int kMaxThreads = 256;

// Threads that kernels use, the calling one included. Starts as the environment variable
// KVLAB_THREADS (environment.h), else the number of CPUs this process may run on.
int kernel_threads();
void set_kernel_threads(int threads);  // at least 1; not while a kernel runs

// Whose threads they are. Between the kernels of a forward pass LibTorch runs next to nothing in
// parallel, so two pools do not meet. Ours gives its core away after a short wait; OpenMP's threads
// spin for milliseconds, which on a machine with other work costs a time slice per call.
enum class ThreadPool {
  kShared,  // OpenMP's
  kOwn,     // ours
};
// Starts as the environment variable KVLAB_THREAD_POOL, `own` or `shared`, else kOwn; always kOwn
// in builds without OpenMP.
ThreadPool kernel_thread_pool();
void set_kernel_thread_pool(ThreadPool pool);  // not while a kernel runs

namespace internal {
using TaskFunction = void (*)(void* context, int64_t task, int thread);
void run_tasks(int64_t num_tasks, TaskFunction function, void* context);
}  // namespace internal

// Calls body(task, thread) once for each task in [0, num_tasks), 0 <= thread < kernel_threads(), in
// no particular order, and returns when all are done. A task's result must not depend on `thread`
// (scratch space only). Calls from inside a task, or from several threads at once, run serially on
// the caller.
template <typename Body>
void parallel_for(int64_t num_tasks, Body&& body) {
  using Plain = std::remove_reference_t<Body>;
  internal::run_tasks(
      num_tasks,
      [](void* context, int64_t task, int thread) {
        (*static_cast<Plain*>(context))(task, thread);
      },
      const_cast<std::remove_const_t<Plain>*>(&body));
}

}  // namespace kvlab
