// How finely a source writes time: whole nanoseconds, microseconds, or less.
#pragma once

#include <cstdint>

#include "pipeline/clocks/match.h"
#include "pipeline/clocks/tie_points.h"

namespace stageline::align {

// The largest of 1, 10, 100 and 1000 ns that every stamp of the domain's cells and collectives is a multiple of, up to
// their common zero: what rounding may have moved a stamp by. Ends are written as start and duration, each rounded, so
// a difference of two clocks' stamps is wrong by less than the sum of their grains. O(stamps), less where they are
// fine.
int64_t stamp_grain_of(const Matches& matches, const ClockDomain& domain);

}  // namespace stageline::align
