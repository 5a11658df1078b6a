// Replays a timeline of devices without some of its work or waiting.
//
// It keeps every recorded lag: an item begins its lag after the end of the last of what it depends on.
//
//   (work that was launched, and began only when a later call let go of the host, also follows that call)
//   launch, wait     after the item before it on the host, plus the stretch between them
//   device work      after the work before it on its stream, the start of its launch, and work of another stream that
//                    ended just before it began and is the last of the three; communication also after the
//                    work that was launched before it, if its kind always does so
//   return of a wait after the device work whose end it was seen to wait for.
//
// Without changes it returns the recorded times. Without a stretch, a wait or device work, the difference is the
// saving. Durations of collectives do not change, since the work of other ranks is not known here; where several ranks
// are replayed together, an operation that they end together ends when the last of them has come.
#pragma once

#include "profile/timeline_data.h"

namespace stageline {

// The parts that a replay removes; empty lists remove nothing.
struct TakenOut {
  std::vector<bool> keys;          // by OwnerKey: the host time of its pieces is left out
  std::vector<bool> wait_nodes;    // by node: its calls return at once
  std::vector<int64_t> device_ns;  // for each device item its new length; −1 keeps the recorded one
};
// Returns how long the window would be in that world, without what was not recorded. O(host items + device work).
int64_t replayed_ns(const DeviceTimeline& timeline, const TakenOut& out);

// A collective or message that several ranks end together. The rank with the shortest operation came last, so clocks
// are not compared.
struct Meeting {
  struct Member {
    uint32_t rank, item;  // indexes of the timelines, and of its device work
  };
  std::vector<Member> members;
  int64_t shorter_ns = 0;  // what its transfer takes less than recorded
};
inline constexpr uint32_t kNoRank = UINT32_MAX;
// Returns the windows of ranks that are replayed together, each with what is taken out of it. Empty where they would
// wait for each other in a circle, so the operations were matched wrongly. No rank waits for `punctual`, an index of
// the timelines; kNoRank: there is none. O(all items + ranks · meetings).
std::vector<int64_t> replayed_together(const std::vector<DeviceTimeline>& timelines, const std::vector<TakenOut>& out,
                                       const std::vector<Meeting>& meetings, uint32_t punctual = kNoRank);

}  // namespace stageline
