// KVLAB_KERNEL(name): name_avx512 or name_portable, as cpu_level() says. KVLAB_WIDE_KERNEL: the
// same with name_avx512_widen where that is the level.
#pragma once

#include "harness/kernels/cpu_level.h"

#if defined(KVLAB_AVX512)
#define KVLAB_KERNEL(name) \
  (::kvlab::cpu_level() >= ::kvlab::CpuLevel::kAvx512 ? name##_avx512 : name##_portable)
#define KVLAB_WIDE_KERNEL(name)                                                  \
  (::kvlab::cpu_level() == ::kvlab::CpuLevel::kAvx512Widen ? name##_avx512_widen \
                                                           : KVLAB_KERNEL(name))
#else
#define KVLAB_KERNEL(name) name##_portable
#define KVLAB_WIDE_KERNEL(name) name##_portable
#endif
