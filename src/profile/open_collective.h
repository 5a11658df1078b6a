// A collective that was open when a capture began. What the last rank to record did before is not known, so it
// shows when the profilers were started, and no waiting.
#pragma once

#include "model/trace.h"

namespace stageline {

// Takes the first collective out of the device work of all ranks if it is the first work of each device, and the rank
// with the shortest kernel, which came last, recorded nothing before it. Profiler steps begin at a known time, so runs
// with steps keep it. O(slices).
void leave_out_open_collective(Trace& trace);

}  // namespace stageline
