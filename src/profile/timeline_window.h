// The window of a timeline of devices: which time counts, and what of it was not recorded.
#pragma once

#include <cstdint>

#include "profile/timeline_data.h"

namespace stageline {

// Chooses the window of the device work in `out`, without the work that belongs to no step of it, and finds what was
// not recorded. Returns the end of the last step, up to which the host counts; INT64_MIN without steps.
int64_t choose_window(const Trace& trace, const Part& part, DeviceTimeline& out);

}  // namespace stageline
