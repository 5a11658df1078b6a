// Models one rank's devices, and the host that feeds them, as one graph. It computes the work of the devices, the owner
// of each of their idle gaps, and the time of the same work without one of these owners.
//
//   host     ──[ops]──▶ launch A ──[ops, Python]──▶ wait ═════▶│──[ops]──▶ launch B ──▶
//                          │                         ▲                        │
//   device                 ▼                         │                        ▼
//   stream 7   ░░░░░░░░░░░ A ████████████████████████┘░░░░░░ idle gap ░░░░░░░ B ████
//
// Host items are the calls that launch device work or wait for it, over all threads that launch, in order of start.
// Between them are stretches of other host work. Every nanosecond of items and stretches is owned by the innermost
// slice that is open then; slices with equal names under equal names are one HostNode. The part of a device gap until
// the end of the call that launched the next work belongs to the host. The rest of the gap belongs to the devices.
//
// Building takes O(slices of the part).
#pragma once

#include "profile/timeline_data.h"

namespace stageline {

// `device` is empty where the part has no device work.
DeviceTimeline device_timeline(const Trace& trace, const Part& part);

// Returns the number of the stream that device work on this lane belongs to; −1: none is known.
int64_t stream_of(const Part& part, size_t slice, size_t lane);

// Chooses the window of the device work in `out`, without the work that belongs to no step of it, and finds what was
// not recorded. Returns the end of the last step, up to which the host counts; INT64_MIN without steps.
int64_t choose_window(const Trace& trace, const Part& part, DeviceTimeline& out);

}  // namespace stageline
