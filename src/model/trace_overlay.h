// TraceOverlay: what to change in a source trace to write it as a new trace. Events gain arguments, lose them, get
// other names or are left out, and new events are appended. write_overlay() of engine/engine.h streams the source
// through it.
//
// A position is one in traceEvents, counted over all files of the part (Slices::file_index).
#pragma once

#include "base/vocabulary.h"

namespace stageline {

struct TraceOverlay {
  size_t part = 0;  // index into Trace::parts
  // For each position, JSON members to put at the end of `args` ("\"critical\":1").
  std::map<uint32_t, std::string> extra_args;
  std::vector<bool> leave_out;          // for each position; positions past the end (all, when empty) are kept
  std::vector<std::string> new_events;  // whole JSON objects, appended at the end
  // For each position, as leave_out: the event's own arguments are dropped before extra_args are added.
  std::vector<bool> drop_args;
  // For each position, the event's new name: a JSON string with its quotes.
  std::map<uint32_t, std::string> new_names;
};

}  // namespace stageline
