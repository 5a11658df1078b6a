// Facts that a flight recorder (c10d's ring buffer of each rank's last collectives) adds to a call's name, size and
// group. They are the order of the calls, and the progress of each. Its timestamps are the host's, so these facts show
// order rather than time. Source of the fields: torch/csrc/distributed/c10d/FlightRecorder (formats 2.1 to 2.10).
#pragma once

#include "base/string_pool.h"

namespace stageline {

enum class FlightState : uint8_t { kScheduled, kStarted, kCompleted };

struct FlightGroup {
  std::string name, description;
  // Global ranks, ascending: the members that a dump lists, else all ranks that made a call in the group.
  std::vector<int32_t> ranks;
  bool members_known = false;
};

// One recorded call. Calls are ordered by FlightCall::slice, which is the order in which they were recorded.
struct FlightCall {
  uint32_t slice = 0;
  int32_t group = -1;  // index into Trace::flight_groups
  FlightState state = FlightState::kScheduled;
  bool is_p2p = false, is_send = false;
  int32_t peer = -1;  // for a send or receive the global rank of the other side; −1 when unknown
  // Counts all calls of the rank; where the first is above 0 (or 1), the ring has lost what came before it.
  int64_t record_id = -1;
  int64_t sequence = -1;  // counts the calls of its group; equal on all members of one collective
  // When the recorder noticed that it was finished; below 0: it says so nowhere. The slice starts at the call.
  int64_t completed_ns = -1;
  int64_t timeout_ms = -1;
  StringId op = 0;                         // "all_reduce", "send": without the back end's name in front
  StringId in_sizes = 0, out_sizes = 0;    // "[[64, 32]]"
  StringId in_dtypes = 0, out_dtypes = 0;  // "Float, BFloat16"
};

}  // namespace stageline
