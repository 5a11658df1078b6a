// The bandwidth of copies and memsets over time: each adds its rate while it runs, so rates of overlapping ones add up.
#pragma once

#include "profile/step_series.h"
#include "profile/torch_view.h"

namespace stageline {

// Rates are whole bytes per second, computed from bytes and nanoseconds, so the sum returns to exactly 0. Copies
// without a duration or a size have no rate, and are counted separately.
struct CopyBandwidth {
  std::string label;  // "Memcpy HtoD", "Memset", …
  int64_t copies = 0, bytes = 0;
  int64_t without_rate = 0;
  StepSeries rate;  // in bytes per second
};
std::vector<CopyBandwidth> copy_bandwidths(const TorchRun& run, const TorchRank& rank);  // ordered by label
inline double gigabytes_per_second(double bytes_per_second) { return bytes_per_second / 1e9; }

// Notes what the rates leave out.
void note_copy_flaws(const std::vector<CopyBandwidth>& copies, Diagnostics& notes);

// HTA's series adds up Kineto's own rates as doubles; equal times are in the order in which numpy leaves them.
struct BandwidthPoint {
  int64_t ts_ns = 0;
  std::string_view label;  // a view into the run's names
  uint16_t lane = 0;
  double gbps = 0;
  uint32_t index = 0;  // of HTA's frame: all starts, then all ends
};
// Returns the points by label, then in HTA's order.
std::vector<BandwidthPoint> hta_bandwidth_points(const TorchRun& run, const TorchRank& rank);
std::vector<std::vector<BandwidthPoint>> hta_bandwidths(const TorchRun& run);  // for every rank

}  // namespace stageline
