// Everything about one slice.
#pragma once

#include <string>

#include "base/json_writer.h"
#include "server/query.h"
#include "server/timeline.h"

namespace stageline {

// {lane, slice, row, name_id, name, kind, start_ns, dur_ns}
void write_slice_reference(JsonWriter& json, const Timeline& timeline, SlicePlace place);

// What leads to a slice and where it leads.
enum class FlowType : uint8_t { kMessage, kLaunch, kForwardBackward, kOther };
const char* flow_type_name(FlowType type);  // "message", "launch", "forward-backward", "flow"

// Duration less that of the slices directly inside it. O(rows · log slices).
int64_t self_ns(const ViewLane& lane, size_t slice);

// The answer to /api/slice. Arguments are read from the source's file, as it was: a changed file has none, and says so.
// Errors: kUsage.
Result<std::string> slice_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
