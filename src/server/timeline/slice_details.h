// Returns everything about one slice.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

// Writes {lane, slice, row, name_id, name, kind, start_ns, dur_ns}.
void write_slice_reference(JsonWriter& json, const Timeline& timeline, SlicePlace place);

// The kinds of arrows that lead to a slice or away from it.
enum class FlowType : uint8_t { kMessage, kLaunch, kForwardBackward, kOther };
const char* flow_type_name(FlowType type);  // "message", "launch", "forward-backward", "flow"

// Returns the slice's duration minus that of the slices directly inside it. O(rows · log slices).
int64_t self_ns(const ViewLane& lane, size_t slice);

// The answer to /api/slice. Arguments are read from the source's file; where it has changed since, there are none, and
// the answer says so. Errors: kUsage.
Result<std::string> slice_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
