// How the time of a rank's devices divides into computing, communication, copies and idle time.
//
//   computing      ├────────┤        ├──────┤
//   communication       ├──────┤
//   copies                         ├───┤
//   span           ├────────┼──┼───┼─┼──────┤  = computing + exposed communication + idle + exposed copies + computing
#pragma once

#include <cstdint>
#include <vector>

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

// The profiler steps of a rank, on its host and on its devices.

// Times count from the run's zero.
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

}  // namespace stageline
