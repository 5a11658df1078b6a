// Decides which edge is wrong when bounds contradict each other around a cycle: the one that most other edges
// contradict.
//
// Least absolute deviations over the whole graph give robust clocks, which a minority of wrong edges cannot move. They
// are computed as least squares in which edges with large residuals get less and less weight. A wrong edge then has a
// conspicuous residual.
#pragma once

#include <vector>

#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// Returns the residual of each edge, its distance from the robust clocks, in the edge's standard errors; 0 for edges
// that are not used. With `slopes` it compares drifts, without it the offsets in the middle of the run. O(edges · steps
// of least_squares()).
std::vector<double> residual_errors(size_t node_count, const std::vector<Edge>& edges, bool slopes);

// Returns true when x is dropped rather than y. An edge that the user gave is never dropped if the other is not the
// user's. Otherwise the order is: larger residual, worse kind of evidence, less precise edge.
bool drop_first(const Edge& x, double x_residual, const Edge& y, double y_residual);

}  // namespace stageline::align
