#include "harness/bench/machine_state.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "results/bench_data.h"

namespace kvlab {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "VmRSS:   1234 kB" of /proc/self/status, in bytes; 0 where it is missing.
int64_t status_bytes(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) {
      std::istringstream text(line.substr(name.size() + 1));
      int64_t kib = 0;
      text >> kib;
      return kib * 1024;
    }
  }
  return 0;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

CpuTimes cpu_times() {
  CpuTimes times;
  std::istringstream line(first_line("/proc/stat"));
  std::string name;
  line >> name;
  double value = 0;
  for (int field = 0; field < 8 && line >> value; ++field) {
    if (field != 3 && field != 4) {  // idle and waiting for disks
      times.machine += value;
    }
  }
  times.machine /= static_cast<double>(::sysconf(_SC_CLK_TCK));
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    times.process = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return times;
}

double others_busy(const CpuTimes& before, const CpuTimes& after, double wall_s) {
  const double others = (after.machine - before.machine) - (after.process - before.process);
  return wall_s > 0 && others > 0 ? others / wall_s : 0;
}

Json machine_state() {
  Json state = Json::object();
  std::istringstream load(first_line("/proc/loadavg"));
  double load_1m = 0;
  if (load >> load_1m) {
    state["load_1m"] = load_1m;
  }
  const std::string cpu = "/sys/devices/system/cpu/cpu0/cpufreq/";
  if (const std::string governor = first_line(cpu + "scaling_governor"); !governor.empty()) {
    state["governor"] = governor;
  }
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("cpu MHz")) {
      std::istringstream text(line.substr(line.find(':') + 1));
      double mhz = 0;
      if (text >> mhz) {
        state["mhz"] = mhz;
      }
      break;
    }
  }
  std::istringstream temperature(first_line("/sys/class/thermal/thermal_zone0/temp"));
  double milli_degrees = 0;
  if (temperature >> milli_degrees) {
    state["temperature_c"] = milli_degrees / 1000;
  }
  return state;
}

int64_t resident_bytes() { return status_bytes("VmRSS"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM"); }

void reset_peak_resident() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
}

std::vector<std::string> timing_warnings(double busy_processors) {
  std::vector<std::string> warnings;
  if (busy_processors > kQuietProcessors) {
    warnings.push_back(
        fmt::format("other processes keep {:.1f} processors busy: timings are not to be trusted",
                    busy_processors));
  }
  const Json state = machine_state();
  if (state.value("governor", "performance") != "performance") {
    warnings.push_back(
        fmt::format("the processor's governor is {}: clocks may change while it is "
                    "measured",
                    state.at("governor").get<std::string>()));
  }
  return warnings;
}

bool is_debug_build() {
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG) || !defined(__OPTIMIZE__)
  return true;
#else
  return false;
#endif
}

}  // namespace kvlab
