// Which tie is to blame when bounds contradict each other around a cycle: the one that most of the others contradict.
//
// Least absolute deviations over the whole graph (least squares, reweighted until large residuals count as little as
// they should) give clocks that a minority of wrong ties cannot move; a wrong one then stands out by its residual.
#pragma once

#include <vector>

#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// By edge: how far it stands from those clocks, in its own standard errors; 0 for edges that are not used. Of the
// slopes, or of the offsets in the middle of the run. O(edges · steps of least_squares()).
std::vector<double> oddness(size_t node_count, const std::vector<Edge>& edges, bool slopes);

// x is to blame rather than y: what the user said last, then the odder, the worse kind of evidence, the weaker.
bool blamed_before(const Edge& x, double x_oddness, const Edge& y, double y_oddness);

}  // namespace stageline::align
