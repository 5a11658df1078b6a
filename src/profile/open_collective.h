// A collective that was open when a capture began. The earlier work of the last rank to record is not known. So the
// collective shows when the profilers were started, and no waiting.
#pragma once

#include "model/trace.h"

namespace stageline {

// Removes the first collective from the device work of all ranks if two things hold. It is the first work of each
// device, and the rank with the shortest kernel, which came last, recorded nothing before it. Profiler steps begin at a
// known time, so runs with steps keep it. O(slices).
void leave_out_open_collective(Trace& trace);

}  // namespace stageline
