// What the calls of every rank add up to by call path, as a fact of a run.
#pragma once

#include <vector>

#include "facts/run.h"
#include "profile/call_tree.h"

namespace stageline {

// Any rank has slices with the profiler's own facts on threads of the host: there are calls to add up.
bool has_calls(const Trace& trace);

// By part of the trace; of parts that hold no slices a tree with its root alone.
const std::vector<CallTree>& call_trees_of(const Run& run);

}  // namespace stageline
