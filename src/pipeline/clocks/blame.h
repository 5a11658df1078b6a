// Decides which tie is wrong when bounds contradict each other around a cycle: the one that most other ties contradict.
//
// Least absolute deviations over the whole graph give clocks that a minority of wrong ties cannot move. They are
// computed as least squares in which ties with large residuals get less and less weight. A wrong tie then has a
// conspicuous residual.
#pragma once

#include <vector>

#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// Returns for each edge how far it is from those clocks, in standard errors of its own; 0 for edges that are not used.
// With `slopes` it compares drifts, without it the offsets in the middle of the run. O(edges · steps of
// least_squares()).
std::vector<double> oddness(size_t node_count, const std::vector<Edge>& edges, bool slopes);

// Returns true when x is dropped rather than y. A tie that the user gave is never dropped if the other is not the
// user's. Otherwise the order is: the odder tie, the worse kind of evidence, the less precise tie.
bool blamed_before(const Edge& x, double x_oddness, const Edge& y, double y_oddness);

}  // namespace stageline::align
