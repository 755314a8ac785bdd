#include "harness/kernels/cpu_level.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "harness/base/check.h"

namespace kvlab {
namespace {

bool has_avx512() {
#if defined(KVLAB_AVX512)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool pair_products_are_fast() {
#if defined(__x86_64__)
  return !__builtin_cpu_is("intel");
#else
  return false;
#endif
}

CpuLevel initial_level() {
  const std::vector<CpuLevel> levels = supported_cpu_levels();
  if (const char* name = std::getenv("KVLAB_CPU_LEVEL"); name != nullptr) {
    for (const CpuLevel level : levels) {
      if (cpu_level_name(level) == name) {
        return level;
      }
    }
  }
  return levels.back() == CpuLevel::kAvx512Widen && pair_products_are_fast() ? CpuLevel::kAvx512
                                                                             : levels.back();
}

std::atomic<CpuLevel>& current_level() {
  static std::atomic<CpuLevel> level{initial_level()};
  return level;
}

}  // namespace

std::string_view cpu_level_name(CpuLevel level) {
  switch (level) {
    case CpuLevel::kReference:
      return "reference";
    case CpuLevel::kPortable:
      return "portable";
    case CpuLevel::kAvx512:
      return "avx512";
    case CpuLevel::kAvx512Widen:
      return "avx512_widen";
  }
  return "unknown";
}

std::vector<CpuLevel> supported_cpu_levels() {
  std::vector<CpuLevel> levels = {CpuLevel::kReference, CpuLevel::kPortable};
  if (has_avx512()) {
    levels.push_back(CpuLevel::kAvx512);
    levels.push_back(CpuLevel::kAvx512Widen);
  }
  return levels;
}

CpuLevel cpu_level() { return current_level().load(std::memory_order_relaxed); }

void set_cpu_level(CpuLevel level) {
  const std::vector<CpuLevel> levels = supported_cpu_levels();
  KVLAB_CHECK(std::find(levels.begin(), levels.end(), level) != levels.end());
  current_level().store(level, std::memory_order_relaxed);
}

}  // namespace kvlab
