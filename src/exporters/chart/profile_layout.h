// The chart of a run without pipeline cells, as geometry: what devices and hosts did, over time.
//
//   title, sizes · span, ▪ computing ▪ communication …
//            ├ Step 0 ──────┤├ Step 1 steps
//   rank 0   ███▅▅█  ▂▂███           each pixel column: the share of its time, from below
//            ▔▔▔▔▔▔▔▔ ▔▔▔            calls of the host
#pragma once

#include "exporters/chart/chart_layout.h"

namespace stageline {

// Errors: kBadInput when there are no slices of devices or calls, kUsage for an impossible width, kLimit when there
// are more ranks than fit. O(slices log slices).
Result<ChartLayout> layout_profile(const Trace& trace, const Theme& theme, const ChartOptions& options,
                                   const MeasureText& measure);

}  // namespace stageline
