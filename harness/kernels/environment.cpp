#include "harness/kernels/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace kvlab {
namespace {

constexpr const char* kLevelVariable = "KVLAB_CPU_LEVEL";
constexpr const char* kThreadsVariable = "KVLAB_THREADS";
constexpr const char* kPoolVariable = "KVLAB_THREAD_POOL";

// Empty where unset.
std::string_view value_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

std::string fault(const char* variable, const std::string& choices) {
  return std::string(variable) + "=" + std::string(value_of(variable)) +
         " is not allowed; it takes " + choices;
}

}  // namespace

std::optional<CpuLevel> cpu_level_from_environment() {
  for (const CpuLevel level : supported_cpu_levels()) {
    if (cpu_level_name(level) == value_of(kLevelVariable)) {
      return level;
    }
  }
  return std::nullopt;
}

std::optional<int> threads_from_environment() {
  const std::string_view text = value_of(kThreadsVariable);
  int threads = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && threads >= 1 && threads <= kMaxThreads ? std::optional(threads) : std::nullopt;
}

std::optional<ThreadPool> thread_pool_from_environment() {
  const std::string_view text = value_of(kPoolVariable);
  return text == "own"      ? std::optional(ThreadPool::kOwn)
         : text == "shared" ? std::optional(ThreadPool::kShared)
                            : std::nullopt;
}

std::string environment_fault() {
  if (!value_of(kLevelVariable).empty() && !cpu_level_from_environment()) {
    std::string levels;
    for (const CpuLevel level : supported_cpu_levels()) {
      levels += (levels.empty() ? "" : ", ") + std::string(cpu_level_name(level));
    }
    return fault(kLevelVariable, levels + " on this processor");
  }
  if (!value_of(kThreadsVariable).empty() && !threads_from_environment()) {
    return fault(kThreadsVariable, "a number from 1 to " + std::to_string(kMaxThreads));
  }
  if (!value_of(kPoolVariable).empty() && !thread_pool_from_environment()) {
    return fault(kPoolVariable, "own or shared");
  }
  return "";
}

}  // namespace kvlab
