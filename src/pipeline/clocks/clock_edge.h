// The graph that clock_net.h solves: a node is one segment of one clock, an edge is the ties between two nodes. And the
// clocks that come out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/clocks/tie_fit.h"

namespace stageline::align {

struct Edge {
  int32_t a = 0, b = 0;  // nodes, a < b
  TieKind kind = TieKind::kMessages;
  int32_t name = -1;         // for collectives: index of their name
  std::vector<size_t> ties;  // indices of Matches::ties
  TiePoints points;
  Bounds bounds;
  TieFit fit;
  bool dropped = false;  // the edge contradicts others that rest on better evidence
};

struct NodeClock {
  double offset = 0, offset_low = 0, offset_high = 0;  // at t = 0, to be added to the coarse offset
  double offset_error = 0, drift_error = 0;            // from likely_errors(); infinite when unknown
  double drift = 0, drift_low = 0, drift_high = 0;
  int32_t root = 0;  // the lowest node that ties lead to; it is the reference of this clock
};

struct Solution {
  std::vector<NodeClock> nodes;
  // Edges that contradict the others, in the order in which they were dropped, each with the cycle of edges that proved
  // it.
  struct Dropped {
    size_t edge;
    std::vector<size_t> cycle;
  };
  std::vector<Dropped> dropped;
  bool hopeless = false;   // contradictions remained however many were dropped, so every edge was
  bool consistent = true;  // the drifts and offsets chosen keep every bound
};

}  // namespace stageline::align
