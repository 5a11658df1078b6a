// Solves the clocks of a run: nodes are (clock, segment), edges are ties.
#pragma once

#include <vector>

#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// Fits every edge, in parallel.
void fit_edges(std::vector<Edge>& edges, double drift_limit);

// Finds drifts first and then offsets, each by least squares inside the bounds. Marks edges that caused negative cycles
// as dropped. O(edges · log points + sweeps).
Solution solve(size_t node_count, std::vector<Edge>& edges, double drift_limit);

}  // namespace stageline::align
