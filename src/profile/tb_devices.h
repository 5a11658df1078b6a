// How busy and how well filled each device of a rank was: the plugin's four GPU figures. Definitions:
// docs/analyses/tb-overview.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/tb_run.h"

namespace stageline {

struct TbDevice {  // values between 0 and 1; NaN: not recorded
  int64_t number = 0;
  int64_t kernel_count = 0;   // over the whole capture
  std::string name;           // "" when unknown
  double memory_bytes = NAN;  // memory size of the device
  int64_t compute_major = -1, compute_minor = -1;
  double utilization = NAN;    // share of the time of all steps in which some kernel ran
  double sm_efficiency = NAN;  // Σ over time of min(1, blocks per SM of the running kernels), in the same time
  double occupancy = NAN;      // estimated achieved occupancy, weighted by kernel time
  double tensor_cores = NAN;   // share of kernel time on tensor cores, known by kernel names
};
// Returns the devices that ran a kernel, by number. Shares refer to the time from the first step's start to the last
// step's end. O(n log n).
std::vector<TbDevice> tb_devices(const TbRun& run, const TbRank& rank);

}  // namespace stageline
