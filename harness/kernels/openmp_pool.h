// The OpenMP run time's threads, which LibTorch's operations use as well.
#pragma once

#include <cstdint>

#include "harness/kernels/parallel.h"

namespace kvlab::internal {

// Runs the tasks on `threads` threads, the calling one included.
void run_on_openmp(int threads, int64_t num_tasks, TaskFunction function, void* context);

}  // namespace kvlab::internal
