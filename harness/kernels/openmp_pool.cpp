// The only file compiled with OpenMP. The library's name is libgomp.so.1 both in the compiler's and
// in LibTorch's folder, so a program that links both loads one and has one pool.
#include "harness/kernels/openmp_pool.h"

#include <omp.h>

#include <atomic>

namespace kvlab::internal {

void run_on_openmp(int threads, int64_t num_tasks, TaskFunction function, void* context) {
  std::atomic<int64_t> next_task{0};
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    for (int64_t task = next_task.fetch_add(1, std::memory_order_relaxed); task < num_tasks;
         task = next_task.fetch_add(1, std::memory_order_relaxed)) {
      function(context, task, thread);
    }
  }
}

}  // namespace kvlab::internal
