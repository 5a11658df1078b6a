// Solves for the values of clocks, which are the nodes of a graph whose edges are ties. Bounds are difference
// constraints; guesses make a least-squares problem.
//
//   x_j − x_i ≤ c_ij        shortest paths from the reference give each clock's tightest interval; a cycle of negative
//                           length is a set of bounds that no clocks can keep: some match in it is wrong
//   Σ w (x_j − x_i − m)²    graph Laplacian, conjugate gradients; then moved inside the bounds
//
// Any x becomes feasible by y_j = min_i (x_i + d_ij), the highest feasible point below it (McShane's extension). The
// lowest one above is found in the same way. Their mean is feasible and near x, and costs two shortest-path sweeps.
#pragma once

#include "base/vocabulary.h"

namespace stageline::align {

struct Guess {  // x[to] − x[from] ≈ value
  int32_t from = 0, to = 0;
  double value = 0, weight = 0;
};

struct Limit {  // x[to] − x[from] ≤ most
  int32_t from = 0, to = 0;
  double max = 0;
  int32_t edge = 0;  // the edge that the limit comes from, for messages
};

// Returns for each node the lowest node of its component; a node that no guess touches is alone.
std::vector<int32_t> components(size_t nodes, const std::vector<Guess>& guesses);

// Solves by least squares, with x = 0 at the lowest node of each component. `prior_weight` pulls every x towards 0; it
// is used for drifts, since no clock drifts far without evidence. O(edges · steps), with a few hundred steps at most; a
// tree is solved at once.
std::vector<double> least_squares(size_t nodes, const std::vector<Guess>& guesses, double prior_weight);

// Moves x inside the limits. False when the limits contradict each other.
bool move_inside(std::vector<double>& x, const std::vector<Limit>& limits);

// Returns limits that contradict each other: cycles of negative length, each as indices of limits in order, no two
// cycles with a node in common. The result is empty when there is no contradiction; otherwise it need not hold all of
// them, so drop one limit of each cycle and ask again. O(limits) where cycles are short, O(nodes · limits) at worst.
std::vector<std::vector<int32_t>> negative_cycles(size_t nodes, const std::vector<Limit>& limits);

// For each node, the lowest and highest value it can have relative to the lowest node of its component; ± infinity
// where nothing bounds it. Expects limits without negative cycles.
struct Intervals {
  std::vector<double> low, high;
};
Intervals intervals(size_t nodes, const std::vector<Limit>& limits, const std::vector<int32_t>& component);

}  // namespace stageline::align
