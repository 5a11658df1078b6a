// TraceOverlay: marks on a source trace, to be written as a trace of its own: events gain arguments,
// lose them, or leave, and new events are appended. The engine streams the source through it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stageline {

struct TraceOverlay {
  size_t part = 0;  // of Trace::parts
  // By position in traceEvents: JSON members to put into `args` ("\"critical\":1").
  std::map<uint32_t, std::string> extra_args;
  std::vector<bool> leave_out;          // by position; empty keeps every event
  std::vector<std::string> new_events;  // whole JSON objects
};

}  // namespace stageline
