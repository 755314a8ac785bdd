// One number of threads for ATen and for our own kernels.
#pragma once

namespace kvlab {

// threads >= 1. Not while a model runs.
void set_compute_threads(int threads);
int compute_threads();

// Gives ATen the kernels' number where the two differ: they share one pool of threads, which would
// be built anew whenever the number changes from one operation to the next.
void align_compute_threads();

}  // namespace kvlab
