// What a flight recorder (c10d's ring of the last collectives of every rank) says beside name, size and group of a
// call: in which order calls were made and how far each got. The stamps are the host's, so these are facts of order,
// not of time. Source of the fields: torch/csrc/distributed/c10d/FlightRecorder (formats 2.1 to 2.10).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/string_pool.h"

namespace stageline {

enum class FlightState : uint8_t { kScheduled, kStarted, kCompleted };

struct FlightGroup {
  std::string name, description;
  std::vector<int32_t> ranks;  // global, ascending: the members as a dump says, else all ranks that made a call in it
  bool members_said = false;
};

// One recorded call; FlightCall::slice is its slice. By slice, which is the order of recording.
struct FlightCall {
  uint32_t slice = 0;
  int32_t group = -1;  // into Trace::flight_groups
  FlightState state = FlightState::kScheduled;
  bool is_p2p = false, is_send = false;
  int32_t peer = -1;          // of a send or receive: global rank of the other side; −1 unknown
  int64_t record_id = -1;     // counts all calls of the rank: the ring begins late where the first is above 0 (or 1)
  int64_t sequence = -1;      // of its group: equal on all members of one collective
  int64_t completed_ns = -1;  // when somebody noticed that it was through, as `start` of the slice is when it was made
  int64_t timeout_ms = -1;
  StringId op = 0;                         // "all_reduce", "send", without the backend in front
  StringId in_sizes = 0, out_sizes = 0;    // "[[64, 32]]"
  StringId in_dtypes = 0, out_dtypes = 0;  // "Float, BFloat16"
};

}  // namespace stageline
