// Checks whether a step graph is the run that it was made of, by comparing what its replay returns with what was
// recorded.
#pragma once

#include "model/trace.h"
#include "pipeline/replay/graph_ops.h"

namespace stageline {

// When a replay misses the recorded steps by more than this share of them, no result of replays is reported for the
// run.
inline constexpr double kMaxMiss = 0.01;

// Returns the error of a replay of the recorded times, as a share of the recorded steps. It counts the work (compute,
// optimizers) that the replayed steps lack, and the time that their waits add or lose. If the recorded steps take 0 ns,
// the result is 0, or above kMaxMiss if the replay takes longer. O(cells + operations + waits).
double replay_miss(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
