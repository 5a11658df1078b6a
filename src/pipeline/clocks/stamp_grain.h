// Finds how finely a source writes time: in whole nanoseconds, in microseconds, or between.
#pragma once

#include <cstdint>

#include "pipeline/clocks/tie_points.h"

namespace stageline::align {

// Returns the largest of 1, 10, 100 and 1000 ns of which every timestamp of the domain's cells and collectives is a
// multiple, counted from a common zero. Rounding may have moved a timestamp by so much. An end is written as start and
// duration, each rounded, so a difference between timestamps of two clocks is wrong by less than the sum of their
// grains. O(timestamps), less where timestamps are fine.
int64_t stamp_grain_of(const Matches& matches, const ClockDomain& domain);

}  // namespace stageline::align
