// `stageline align`: what is known of each rank's clock, a row for each rank and one more for each time it was set (or,
// where every step counts from its own zero, for each step).
#pragma once

#include <vector>

#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// For programs: exact, every column (docs/howto/clocks.md). What nothing ties has no offset and the method "untied", or
// "trusted" where `trusted`.
Table clock_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted);

// For people: offsets in ms, drifts in ppm, times since the rank's first cell, and only columns that say something.
Table clock_summary_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted);

}  // namespace stageline
