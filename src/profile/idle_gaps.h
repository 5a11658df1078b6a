// The times in which devices had no work, and what each part of the window was spent on.
#pragma once

#include "profile/timeline_data.h"

namespace stageline {

// The part that an instant of the window counts as: the first of these that covers it.
enum class WindowPart : uint8_t { kCompute, kCommunication, kMemory, kOther, kIdle };
// A piece of the window with the one thing that it belongs to.
struct WindowPiece {
  int64_t start_ns, end_ns;
  WindowPart part;
  uint32_t what;  // an index of `device`; of kIdle an OwnerKey
  int64_t ns() const { return end_ns - start_ns; }
};
// The pieces of the window by kind and time; they add up to the account and to window_ns(). Within a kind an instant
// belongs to the work that began first. O(device work + gaps).
std::vector<WindowPiece> window_pieces(const DeviceTimeline& timeline);
std::vector<WindowPiece> busy_pieces(const DeviceTimeline& timeline);  // the same without idle time

// Returns the gaps of [from, until) that these items leave, indexes of `device` in order of start.
std::vector<IdleGap> idle_gaps(const DeviceTimeline& timeline, const std::vector<int32_t>& items, int64_t from_ns,
                               int64_t until_ns);
// Returns what each cause has of a gap: this is the one rule for idle time.
IdleTimes idle_times(const DeviceTimeline& timeline, const IdleGap& gap);
// Returns the cause that has most of it.
IdleCause main_cause(const IdleTimes& times);
// Returns the pieces of each cause, none of them empty: one per gap at most.
ByEnum<IdleCause, std::vector<int64_t>, kIdleCauses> idle_pieces(const DeviceTimeline& timeline,
                                                                 const std::vector<IdleGap>& gaps);

// Calls each(start, end, last) for what was recorded of [start, end); `last`: nothing of it follows.
template <class Each> void each_recorded(const DeviceTimeline& t, int64_t start, int64_t end, Each&& each) {
  for (const Interval& hole : t.unrecorded) {
    if (hole.end <= start || hole.start >= end) continue;
    if (hole.start > start) each(start, hole.start, false);
    start = std::min(end, hole.end);
  }
  each(start, end, true);
}

// Returns the end of the host's part of a gap: of the call that launched the next work, or of one that held the host.
int64_t host_end_of(const DeviceTimeline& t, int64_t start, int64_t end, int32_t next);

}  // namespace stageline
