// Replays a timeline of devices without some of its work or waiting.
//
// It keeps every recorded lag: an item begins its lag after the end of the last of what it depends on.
//
//   (work that was launched, and began only when a later call let go of the host, also follows that call)
//   launch, wait     after the item before it on the host, plus the stretch between them
//   device work      after the work before it on its stream, the start of its launch, and work of another stream that
//                    ended just before it began and is the last of the three
//   return of a wait after the device work whose end it was seen to wait for.
//
// Without changes it returns the recorded times. Without a stretch, a wait or device work, the difference is the
// saving. Durations of collectives do not change, since the work of other ranks is not known here.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/timeline_data.h"

namespace stageline {

// The parts that a replay removes; empty lists remove nothing.
struct TakenOut {
  std::vector<bool> keys;          // by OwnerKey: the host time of its pieces is left out
  std::vector<bool> wait_nodes;    // by node: its calls return at once
  std::vector<int64_t> device_ns;  // for each device item its new length; −1 keeps the recorded one
};
// Returns how long the window would be in that world, without what was not recorded. O(host items +
// device work).
int64_t replayed_ns(const DeviceTimeline& timeline, const TakenOut& out);

}  // namespace stageline
