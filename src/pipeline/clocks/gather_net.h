// Makes a net of clocks, with bounds that agree, from matches. It gathers every tie, finds clocks that were set during
// the run, and excludes bad matches and collectives that do not span the replicas.
#pragma once

#include <vector>

#include "base/diagnostics.h"
#include "pipeline/clocks/clock_edge.h"

namespace stageline::align {

// Solves the clocks of a run: nodes are (clock, segment), edges are ties.

// Fits every edge, in parallel.
void fit_edges(std::vector<Edge>& edges, double drift_limit);

// Finds drifts first and then offsets, each by least squares inside the bounds. Marks edges that caused negative cycles
// as dropped. O(edges · log points + sweeps).
Solution solve(size_t node_count, std::vector<Edge>& edges, double drift_limit);

struct Net {
  std::vector<ClockDomain> domains;
  std::vector<size_t> domain_of_part;
  std::vector<int32_t> first_node;  // for each domain; the last entry is the number of nodes
  int64_t middle_ns = 0;            // t = 0 on the coarse axis, in the middle of the run
  double drift_limit = kMaxDrift;
  std::vector<Edge> edges;

  int32_t node_count() const { return first_node.back(); }
  size_t domain_of_node(int32_t node) const;
};

Net gather_net(const Matches& matches, bool each_rank_alone, Diagnostics& notes);

// Returns "rank 3", or for a machine "machine1".
std::string clock_name_of(const Trace& trace, const ClockDomain& domain);
// Returns a match in words: "step 5, RF3 of rank 2".
std::string match_name_of(const Matches& matches, const Edge& edge, uint32_t tag);

}  // namespace stageline::align
