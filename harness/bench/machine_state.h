// What the machine was doing while something was measured: numbers that explain an outlier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/base/json.h"

namespace kvlab {

// CPU time of the whole machine and of this process, in seconds since some start.
struct CpuTimes {
  double machine = 0;
  double process = 0;
};
CpuTimes cpu_times();

// Processors that others kept busy, on average, over `wall_s` seconds.
double others_busy(const CpuTimes& before, const CpuTimes& after, double wall_s);

// {"load_1m", "governor", "mhz", "temperature_c", ...}, those that the machine tells.
Json machine_state();

// Resident memory of this process, now and at most since the last reset. A kernel that does not
// allow the reset leaves the peak of the whole run.
int64_t resident_bytes();
int64_t peak_resident_bytes();
void reset_peak_resident();

// Reasons not to trust a timing made now: more than kQuietProcessors used by others, a governor
// that saves power. Empty: none known.
std::vector<std::string> timing_warnings(double busy_processors);

// True where the build is not one to be timed at all.
bool is_debug_build();

}  // namespace kvlab
