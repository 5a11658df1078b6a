// The call trees of all ranks (what their calls add up to by call path), as a fact of a run.
#pragma once

#include <vector>

#include "facts/run.h"
#include "profile/call_tree.h"

namespace stageline {

// Returns true when some rank has calls to add up: slices with the profiler's own facts on threads of the host.
bool has_calls(const Trace& trace);

// Returns one tree for each part of the trace; a part without slices has a tree of its root alone.
const std::vector<CallTree>& call_trees_of(const Run& run);

}  // namespace stageline
