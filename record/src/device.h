// Device times: events on the caller's stream, from a pool, read back by the background thread. devices.cc has the
// essay.
#pragma once

#include <cstdint>

#include "layout.h"

namespace slr {

struct Lane;
struct DeviceLane;
struct Driver;

// The driver of an enum slr_device, once the program has loaded it; nullptr in a child of a process that used it.
// Looked for at the first call, the second, the fourth, the eighth and so on.
const Driver* loaded_driver(uint8_t kind);

// Finds the lane's driver in the process, and the device of the stream. If there is no driver, the lane's records have
// the host's times, and it is looked for again from time to time. This is not for the hot path.
void bind_lane(uint16_t lane);
// The calling thread works on the device that the lane was made on: handles of default streams are the same on all.
bool same_device(const Lane& lane);

// Puts an event on the lane's stream: its place in the table, or kNoEvent where the range goes without (counted by
// reason). `depth`: ranges of that lane open around it on this thread. Two driver calls, no lock, no memory.
uint32_t stamp(uint16_t lane, uint32_t depth);
// The event of a range's end serves the next range's begin too.
void share_event(uint32_t event);
// Gives back one use of an event; kNoEvent is none.
void release_event(uint32_t event);

enum class DeviceState : uint8_t { kWaiting, kReady, kNever };
struct DeviceTimes {
  int64_t start_ns, dur_ns;  // on the lane's device clock
};
// Returns the fate of a range's events; kReady and kNever give them back.
DeviceState harvest(const Record& record, const Extra& extra, DeviceTimes& times);

// A step begins: where anchors are taken only at step boundaries, now is the time.
void ask_for_anchors();

}  // namespace slr
