// Edges between clocks, and the clocks that they lead to: what clock_net.h solves. Nodes are (clock, segment), edges
// are ties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/clocks/tie_fit.h"

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

}  // namespace stageline::align
