// One number of threads for ATen and for our own kernels.
#pragma once

namespace kvlab {

// threads >= 1. Not while a model runs.
void set_compute_threads(int threads);
int compute_threads();

}  // namespace kvlab
