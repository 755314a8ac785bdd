// KVLAB_KERNEL(name): name_avx512 or name_portable, as cpu_level() says.
#pragma once

#include "harness/kernels/cpu_level.h"

#if defined(KVLAB_AVX512)
#define KVLAB_KERNEL(name) \
  (::kvlab::cpu_level() == ::kvlab::CpuLevel::kAvx512 ? name##_avx512 : name##_portable)
#else
#define KVLAB_KERNEL(name) name##_portable
#endif
