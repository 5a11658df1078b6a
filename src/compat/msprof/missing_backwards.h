// Reports forwards without a backward, since a chart of such a profile looks complete and is not. The usual case is
// MindSpeed's DualPipeV without --moe-fb-overlap, where the functions that were marked are not the ones that run
// backwards.
#pragma once

#include "base/diagnostics.h"
#include "model/trace.h"

namespace stageline {

// Counts them, and names rank and step of the first one in `notes` (pp_chart.no_backwards). A rank's last step may have
// been cut by the end of the profile, so it counts only where the rank has no other. O(cells).
void say_missing_backwards(const Trace& trace, Diagnostics& notes);

}  // namespace stageline
