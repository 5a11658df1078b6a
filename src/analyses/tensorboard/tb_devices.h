// How busy each device of a rank was, and how full: the plugin's four GPU figures. Definitions:
// docs/analyses/tb-overview.md.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "analyses/tensorboard/tb_run.h"

namespace stageline {

struct TbDevice {  // shares of 1; NaN where the trace does not say
  int64_t number = 0;
  int64_t kernel_count = 0;   // of the whole capture
  std::string name;           // "" unknown
  double memory_bytes = NAN;  // of the device
  int64_t compute_major = -1, compute_minor = -1;
  double utilization = NAN;    // some kernel runs: share of the time of all steps
  double sm_efficiency = NAN;  // Σ over time of min(1, blocks per SM of what runs), same window
  double occupancy = NAN;      // est. achieved, by kernel time
  double tensor_cores = NAN;   // kernel time on tensor cores, by name

  std::string compute_text() const {  // "7.0", "" unknown
    return compute_major < 0
               ? ""
               : std::to_string(compute_major) + "." + std::to_string(std::max<int64_t>(0, compute_minor));
  }
};
// Devices that ran a kernel, by number. The window is from the first step's start to the last one's end. O(n log n).
std::vector<TbDevice> tb_devices(const TbRun& run, const TbRank& rank);

}  // namespace stageline
