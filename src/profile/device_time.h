// How the time of a rank's devices divides into computing, communication, copies and idle time.
//
//   computing      ├────────┤        ├──────┤
//   communication       ├──────┤
//   copies                         ├───┤
//   span           ├────────┼──┼───┼─┼──────┤  = computing + exposed communication + idle + exposed copies + computing
#pragma once

#include <cstdint>

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

}  // namespace stageline
