// Divides the time of a rank's devices into computing, communication, copies and idle time.
//
//   computing      ├────────┤        ├──────┤
//   communication       ├──────┤
//   copies                         ├───┤
//   span           ├────────┼──┼───┼─┼──────┤  = computing + exposed communication + idle + exposed copies + computing
#pragma once

#include "profile/torch_view.h"

namespace stageline {

struct DeviceTime {
  int32_t rank = 0;
  bool any = false;  // there is device work
  // The span runs from the first start to the last end of device work, without the time between two recordings.
  int64_t span_ns = 0, idle_ns = 0;
  int64_t outside_ns = 0;                        // of the host and of devices, recorded before or after the span
  int64_t compute_ns = 0, communication_ns = 0;  // unions
  int64_t overlap_ns = 0;                        // communication while something is computed
  int64_t exposed_communication_ns() const { return communication_ns - overlap_ns; }
  int64_t other_ns() const { return span_ns - idle_ns - compute_ns; }
  // Copies, memsets and other work while there is neither computation nor communication.
  int64_t exposed_memory_ns() const { return other_ns() - exposed_communication_ns(); }
};

// In hta mode the span holds the time between two recordings too. O(n log n) in the rows.
DeviceTime device_time(const TorchRun& run, const TorchRank& rank);

// The profiler steps of a rank, on its host and on its devices. Times count from the run's zero.
struct DeviceStep {
  int32_t rank = 0;
  int64_t number = 0;
  int64_t host_start_ns = 0, host_ns = 0;  // of the host's row
  bool any = false;                        // the step launched device work; otherwise the fields below are 0
  int64_t start_ns = 0, end_ns = 0;        // first start and last end of that work
  // From the last device end of the step before to its last device end; for a first step from its first start.
  int64_t length_ns = 0;
};

// The steps of a part that the run's options and filter leave, in the order of the part. O(slices).
std::vector<DeviceStep> device_steps(const TorchRun& run, size_t part);

// The clock of a rank's device over time, and how long kernels take that its peers run too.
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
