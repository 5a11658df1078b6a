// TraceOverlay: marks on a source trace, to be written as a trace of its own: events gain arguments,
// lose them, get other names, or leave, and new events are appended. engine/write_overlay.h streams the source
// through it.
//
// Positions are those in traceEvents, counted over all files of the part: Slices::file_index.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace stageline {

struct TraceOverlay {
  size_t part = 0;  // of Trace::parts
  // By position in traceEvents: JSON members to put at the end of `args` ("\"critical\":1").
  std::map<uint32_t, std::string> extra_args = {};
  std::vector<bool> leave_out = {};          // by position; what is past the end, or all when empty, is kept
  std::vector<std::string> new_events = {};  // whole JSON objects
  // By position, as leave_out: the event's own arguments are dropped before extra_args are added.
  std::vector<bool> drop_args = {};
  // By position: the event's new name, a JSON string with its quotes.
  std::map<uint32_t, std::string> new_names = {};
};

}  // namespace stageline
