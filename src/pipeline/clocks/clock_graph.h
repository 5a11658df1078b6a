// Clocks as the nodes of a graph, ties as its edges: bounds are difference constraints, guesses a least-squares
// problem.
//
//   x_j − x_i ≤ c_ij        shortest paths from the reference give each clock's tightest interval; a cycle of negative
//                           length is a set of bounds that no clocks can keep: some match in it is wrong
//   Σ w (x_j − x_i − m)²    graph Laplacian, conjugate gradients; then moved inside the bounds
//
// Any x becomes feasible by y_j = min_i (x_i + d_ij), the highest feasible point below it (McShane's extension),
// likewise the lowest one above: their mean is feasible and near x, and costs two shortest-path sweeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stageline::align {

struct Guess {  // x[to] − x[from] ≈ value
  int32_t from = 0, to = 0;
  double value = 0, weight = 0;
};

struct Limit {  // x[to] − x[from] ≤ most
  int32_t from = 0, to = 0;
  double most = 0;
  int32_t edge = 0;  // whose it is, for messages
};

// Number of each node's component, by its lowest node; nodes that no guess touches are alone.
std::vector<int32_t> components(size_t nodes, const std::vector<Guess>& guesses);

// Least squares, x = 0 at the lowest node of each component. `prior_weight` draws every x to 0 (drifts: no clock is
// far off without evidence). O(edges · steps), steps ≤ a few hundred; a tree is solved at once.
std::vector<double> least_squares(size_t nodes, const std::vector<Guess>& guesses, double prior_weight);

// Moves x inside the limits as far as they can be kept. False when they contradict each other.
bool move_inside(std::vector<double>& x, const std::vector<Limit>& limits);

// Limits that contradict each other: cycles of negative length, each as indexes of limits in order, no two with a node
// in common. Empty when there is none; not all there are, so drop something of each and ask again. O(limits) where
// cycles are short, O(nodes · limits) at worst.
std::vector<std::vector<int32_t>> negative_cycles(size_t nodes, const std::vector<Limit>& limits);

// Interval of each node around its component's lowest node: lowest and highest value, ± infinity where nothing bounds
// it. The limits have no negative cycle.
struct Intervals {
  std::vector<double> low, high;
};
Intervals intervals(size_t nodes, const std::vector<Limit>& limits, const std::vector<int32_t>& component);

}  // namespace stageline::align
