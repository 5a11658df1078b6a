// The clock of a rank's device over time, and how long kernels take that its peers run too.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stageline {

struct ClockTime {
  double mhz = 0;
  int64_t values = 0;        // how often it was recorded
  int64_t recorded_ns = 0;   // from the first slice of the rank to the last
  int64_t computing_ns = 0;  // of this time, while kernels computed
};

// The clocks of the part's device that were recorded ("AI Core / freq", "SM Clock (MHz)"), the lowest first; empty
// where no counter of them was. A value lasts until the next one, the first also before its own time.
std::vector<ClockTime> clock_times(const Part& part);

// The mean clock while kernels computed, by time. NaN where it is not known.
double computing_mhz(const std::vector<ClockTime>& clocks);

// Computing kernels of a rank whose name and shapes other ranks have too.
struct SharedKernels {
  double own_ns = 0;     // all of them
  double others_ns = 0;  // the same number of kernels, each as long as the mean on the others (their median)
  // By slice of the rank: that length, for kernels that take less on the others; −1 for all else.
  std::vector<int64_t> shorter_ns;
};
SharedKernels shared_kernels(const Trace& trace, const Part& part);

}  // namespace stageline
