// The tables of `stageline align`: what is known of each rank's clock. There is a row for each rank, and one more for
// each time its clock was set (or, where every step counts from its own zero, for each step).
#pragma once

#include <vector>

#include "model/table.h"
#include "model/trace.h"

namespace stageline {

// Returns a table for programs: exact values in all columns (docs/reference/clocks.md). A rank that nothing connects to
// the others has no offset and the method `untied`, or with `trusted` the method `trusted`.
Table clock_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted);

// For people: offsets in ms, drifts in ppm, times since the rank's first cell, and only those columns that say
// something.
Table clock_summary_table(const Trace& trace, const std::vector<ClockMap>& clocks, bool trusted);

}  // namespace stageline
