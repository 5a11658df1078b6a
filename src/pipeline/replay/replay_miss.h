// Checks whether a step graph is the run that it was made of, by comparing what its replay returns with what was
// recorded.
#pragma once

#include <vector>

#include "model/trace.h"
#include "pipeline/replay/graph_ops.h"

namespace stageline {

// When a replay misses the recorded steps by more than this share of them, no result of replays is reported for the
// run.
inline constexpr double kMaxMiss = 0.01;

// Returns for each step of the graph by how much a replay of the recorded times misses it. It counts the work (compute,
// optimizers) that the replayed step lacks, and the time that its waits add or lose. O(cells + operations + waits).
std::vector<double> replay_misses(const Trace& trace, const StepGraph& graph);

}  // namespace stageline
