// Forwards without a backward: a chart of such a profile looks complete, and is not. MindSpeed's DualPipeV without
// --moe-fb-overlap is the usual case, where the functions that were marked are not those that run backwards.
#pragma once

#include "base/diagnostics.h"
#include "model/trace.h"

namespace stageline {

// Counts them, and names the first one's rank and step in `notes` (pp_chart.no_backwards). A rank's last step may be
// cut by the end of the profile; it counts where the rank has no other. O(cells).
void say_missing_backwards(const Trace& trace, Diagnostics& notes);

}  // namespace stageline
