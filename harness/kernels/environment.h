// The environment variables that kernels start from. An unset or empty one is no choice; of a value
// that is none of the choices a library takes no notice, and programs refuse it
// (environment_fault).
#pragma once

#include <optional>
#include <string>

#include "harness/kernels/cpu_level.h"
#include "harness/kernels/parallel.h"

namespace kvlab {

std::optional<CpuLevel> cpu_level_from_environment();      // KVLAB_CPU_LEVEL, a supported level
std::optional<int> threads_from_environment();             // KVLAB_THREADS, 1 to kMaxThreads
std::optional<ThreadPool> thread_pool_from_environment();  // KVLAB_THREAD_POOL, own or shared

// Which of these variables has a value that is none of its choices, and what they are; else empty.
std::string environment_fault();

}  // namespace kvlab
