// The profiler steps of a rank, on its host and on its devices.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/torch_view.h"

namespace stageline {

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
