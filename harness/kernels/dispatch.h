// KVLAB_KERNEL(name): name_avx512, name_avx2 or name_portable, as cpu_level() says.
// KVLAB_TILE_KERNEL: the same with name_amx where that is the level; KVLAB_PRODUCT_KERNEL: with
// name_avx512_widen too.
#pragma once

#include "harness/kernels/cpu_level.h"

#if defined(KVLAB_X86_64)
// The sources that any CPU runs, as compiled for this one.
#define KVLAB_SHARED_KERNEL(name) \
  (::kvlab::cpu_level() >= ::kvlab::CpuLevel::kAvx2 ? name##_avx2 : name##_portable)
#define KVLAB_KERNEL(name) \
  (::kvlab::cpu_level() >= ::kvlab::CpuLevel::kAvx512 ? name##_avx512 : KVLAB_SHARED_KERNEL(name))
#define KVLAB_TILE_KERNEL(name) \
  (::kvlab::cpu_level() == ::kvlab::CpuLevel::kAmx ? name##_amx : KVLAB_KERNEL(name))
#define KVLAB_PRODUCT_KERNEL(name)                                               \
  (::kvlab::cpu_level() == ::kvlab::CpuLevel::kAvx512Widen ? name##_avx512_widen \
                                                           : KVLAB_TILE_KERNEL(name))
#else
#define KVLAB_SHARED_KERNEL(name) name##_portable
#define KVLAB_KERNEL(name) name##_portable
#define KVLAB_TILE_KERNEL(name) name##_portable
#define KVLAB_PRODUCT_KERNEL(name) name##_portable
#endif
