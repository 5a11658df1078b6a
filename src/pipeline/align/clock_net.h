// The clocks of a run and what ties them, ready to be solved: nodes are (clock, segment), edges are ties.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/align/tie_fit.h"

namespace stageline::align {

struct Edge {
  int32_t a = 0, b = 0;  // nodes, a < b
  TieKind kind = TieKind::kMessages;
  int32_t name = -1;         // of collectives
  std::vector<size_t> ties;  // into Matches::ties
  TiePoints points;
  Bounds bounds;
  TieFit fit;
  bool dropped = false;  // contradicts what is better founded
};

struct NodeClock {
  double offset = 0, offset_low = 0, offset_high = 0;  // at t = 0, on top of the coarse offset
  double offset_error = 0, drift_error = 0;            // likely errors (likely_errors()); infinite: unknown
  double drift = 0, drift_low = 0, drift_high = 0;
  int32_t root = 0;  // lowest node that ties lead to: the clock it is put on
};

struct Solution {
  std::vector<NodeClock> nodes;
  // Edges that were found to contradict the others, in the order they were dropped, each with the cycle (of edges) that
  // proved it.
  struct Dropped {
    size_t edge;
    std::vector<size_t> cycle;
  };
  std::vector<Dropped> dropped;
  bool hopeless = false;   // contradictions wherever one looks: every edge was dropped
  bool consistent = true;  // every bound is kept by the drifts and offsets chosen
};

// Fits every edge, in parallel.
void fit_edges(std::vector<Edge>& edges, double drift_limit);

// Drifts first, then offsets, each by least squares inside the bounds. Marks edges of negative cycles as dropped.
// O(edges · log points + sweeps).
Solution solve(size_t node_count, std::vector<Edge>& edges, double drift_limit);

}  // namespace stageline::align
