// Checks whether a step graph is the run that it was made of, by comparing what its replay returns with what was
// recorded.
#pragma once

#include "model/trace.h"
#include "pipeline/replay/graph_ops.h"

namespace stageline {

// When a replay misses the recorded steps by more than this share of them, nothing that follows from replays is said of
// the run.
inline constexpr double kMaxMiss = 0.01;

// Returns by how much the replay of the recorded times misses the recorded steps, as a share of them: the work
// (compute, optimizers) that its steps lack, and the time that its waits add or lose. Where the recorded steps take 0
// ns, the result is 0, or above kMaxMiss if the replay takes longer. O(cells + operations + waits).
double replay_miss(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
