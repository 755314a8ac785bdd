// Working memory of a thread, kept from call to call.
#pragma once

#include <cstddef>

namespace kvlab {

// At least `bytes`, aligned to 64, uninitialised; valid until this thread asks for the same slot
// again. A kernel's caller thread uses slot 0, what runs inside its tasks slot 1, a task that
// calls kernels itself slot 2, and a kernel that calls another slot 3.
void* thread_scratch(int slot, size_t bytes);

}  // namespace kvlab
