// Whether a step graph is the run that it was made of: what its replay returns, against what was recorded.
#pragma once

#include "model/trace.h"
#include "pipeline/replay/graph_ops.h"

namespace stageline {

// Beyond this share of the recorded steps nothing that follows from replays is a statement about the run.
inline constexpr double kMostMiss = 0.01;

// By how much the replay of the recorded times misses the recorded steps, as a share of them: what work (compute,
// optimizers) its steps lack, and what its waits add or lose. Of 0 ns of steps 0 or more than kMostMiss. O(cells +
// operations + waits).
double replay_miss(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
