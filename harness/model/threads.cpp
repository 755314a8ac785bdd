#include "harness/model/threads.h"

#include <ATen/Parallel.h>

#include "harness/kernels/parallel.h"

namespace kvlab {

void set_compute_threads(int threads) {
  at::set_num_threads(threads);
  set_kernel_threads(threads);
}

int compute_threads() { return kernel_threads(); }

}  // namespace kvlab
