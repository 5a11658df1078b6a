// Finds the work of devices that several ranks end together, for a replay of all of them (timeline_replay.h).
#pragma once

#include "profile/timeline_replay.h"
#include "profile/torch_rows.h"

namespace stageline {

struct Meetings {
  std::vector<Meeting> list;
  double known = 0;  // their part of the time of all communication
};
// `timelines` are those of run.parts, in the same order. Collectives and messages count that were found on more than
// one rank. O(n log n) in all operations.
Meetings find_meetings(const TorchRun& run, const std::vector<DeviceTimeline>& timelines);

}  // namespace stageline
