// Bandwidth of copies and memsets over time: each adds its rate while it runs, so overlapping ones add up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "profile/step_series.h"
#include "profile/torch_view.h"

namespace stageline {

// Exact: rates are whole bytes per second, from bytes and nanoseconds, so the sum returns to 0. Copies without
// a duration or a size have no rate and are counted apart.
struct CopyBandwidth {
  std::string label;  // "Memcpy HtoD", "Memset", …
  int64_t copies = 0, bytes = 0;
  int64_t without_rate = 0;
  StepSeries rate;  // bytes per second
};
std::vector<CopyBandwidth> copy_bandwidths(const TorchRun& run, const TorchRank& rank);  // by label
// "Memcpy HtoD" of CUDA's and of ROCm's names.
std::string copy_label(std::string_view name, Category category);
inline double gigabytes_per_second(double bytes_per_second) { return bytes_per_second / 1e9; }

// Says what the rates leave out.
void note_copy_flaws(const std::vector<CopyBandwidth>& copies, Diagnostics& notes);

// HTA's series: Kineto's own rates added up as doubles, equal times in the order numpy leaves them.
struct BandwidthPoint {
  int64_t ts_ns = 0;
  std::string_view label;  // into the run's names
  uint16_t lane = 0;
  double gbps = 0;
};
// By label, then in HTA's order.
std::vector<BandwidthPoint> hta_bandwidth_points(const TorchRun& run, const TorchRank& rank);
std::vector<std::vector<BandwidthPoint>> hta_bandwidths(const TorchRun& run);  // of every rank

}  // namespace stageline
