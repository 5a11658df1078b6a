// Where the two ends of a link are, and whether a run was recorded on hosts alone: what advice depends on.
#pragma once

#include "model/trace.h"

namespace stageline {

enum class LinkMachines : uint8_t { kUndecided, kSame, kSeveral };

// The machines of two stages' ranks: the same one in every replica, different ones in some, or unknown ones.
LinkMachines link_machines(const Trace& trace, int32_t stage, int32_t other_stage);
// Returns whether this is a profile of hosts alone: its rows have facts, and none is of a device.
bool of_hosts_alone(const Trace& trace);

}  // namespace stageline
