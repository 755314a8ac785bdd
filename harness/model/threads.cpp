#include "harness/model/threads.h"

#include <ATen/Parallel.h>

#include "harness/kernels/parallel.h"

namespace kvlab {

void set_compute_threads(int threads) {
  at::set_num_threads(threads);
  set_kernel_threads(threads);
}

void align_compute_threads() {
  if (at::get_num_threads() != kernel_threads()) {
    at::set_num_threads(kernel_threads());
  }
}

int compute_threads() { return kernel_threads(); }

}  // namespace kvlab
