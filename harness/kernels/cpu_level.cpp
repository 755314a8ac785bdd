#include "harness/kernels/cpu_level.h"

#include <algorithm>
#include <atomic>

#if defined(KVLAB_X86_64) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "harness/base/check.h"
#include "harness/kernels/environment.h"

namespace kvlab {
namespace {

bool has_avx2() {
#if defined(KVLAB_X86_64)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(KVLAB_X86_64)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// The instructions, and Linux's leave to use the large registers, which is asked for once for all
// threads.
bool has_amx() {
#if defined(KVLAB_X86_64) && defined(__linux__)
  static const bool usable = [] {
    constexpr unsigned kBf16 = 1U << 22;
    constexpr unsigned kTile = 1U << 24;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kBf16) == 0 ||
        (edx & kTile) == 0) {
      return false;
    }
    constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of asm/prctl.h
    constexpr int kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return usable;
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
  if (const auto level = cpu_level_from_environment()) {
    return *level;
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
    case CpuLevel::kAvx2:
      return "avx2";
    case CpuLevel::kAvx512:
      return "avx512";
    case CpuLevel::kAvx512Widen:
      return "avx512_widen";
    case CpuLevel::kAmx:
      return "amx";
  }
  return "unknown";
}

std::vector<CpuLevel> supported_cpu_levels() {
  std::vector<CpuLevel> levels = {CpuLevel::kReference, CpuLevel::kPortable};
  if (!has_avx2()) {
    return levels;
  }
  levels.push_back(CpuLevel::kAvx2);
  if (!has_avx512()) {
    return levels;
  }
  levels.push_back(CpuLevel::kAvx512);
  levels.push_back(CpuLevel::kAvx512Widen);
  if (has_amx()) {
    levels.push_back(CpuLevel::kAmx);
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
