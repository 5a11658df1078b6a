// The net of clocks: a node is one segment of one clock, an edge is the ties between two nodes. Gathers it, solves it,
// and estimates how far the clocks that come out of it may be wrong.
#pragma once

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

// Gathers every tie, finds clocks that were set during the run, and excludes bad matches and collectives that do not
// span the replicas.
Net gather_net(const Matches& matches, bool each_rank_alone, Diagnostics& notes);

// Returns "rank 3", or for a machine "machine1".
std::string clock_name_of(const Trace& trace, const ClockDomain& domain);
// Returns a match in words: "step 5, RF3 of rank 2".
std::string match_name_of(const Matches& matches, const Edge& edge, uint32_t tag);

// Decides which edge is wrong when bounds contradict each other around a cycle: the one that most other edges
// contradict.
//
// Least absolute deviations over the whole graph give robust clocks, which a minority of wrong edges cannot move. They
// are computed as least squares in which edges with large residuals get less and less weight. A wrong edge then has a
// conspicuous residual. Returns the residual of each edge, its distance from the robust clocks, in the edge's standard
// errors; 0 for edges that are not used. With `slopes` it compares drifts, without it the offsets in the middle of the
// run. O(edges · steps of least_squares()).
std::vector<double> residual_errors(size_t node_count, const std::vector<Edge>& edges, bool slopes);

// Returns true when x is dropped rather than y. An edge that the user gave is never dropped if the other is not the
// user's. Otherwise the order is: larger residual, worse kind of evidence, less precise edge.
bool drop_first(const Edge& x, double x_residual, const Edge& y, double y_residual);

// Estimates the likely error of the chosen clocks; the proven bounds are reported with this estimate.
//
// The likely error of one tie's offset has three sources, which are added as squares:
//
//   scatter      of its samples about its line, divided by the root of their number (TieFit::offset_sigma); a quarter
//                of the room between the bounds where the line is the middle of that room
//   asymmetry    half of the difference between what the two ways take. Nobody can measure it. If one way took all of
//                the measured time and the other none, it would be the mean over both ways of what a message takes
//                after its sender is done. It is taken as evenly spread from 0 to there: that value over the root of
//                three
//   slope        the error of the slope times the distance of the samples' middle from the middle of the run
//
// The error of a clock is the root of the sum of these squares along the best path to the reference; further paths
// could only improve it. Where ties form cycles, least squares leave residuals. When these are larger than the ties'
// own errors explain, the ties are worse than they claim, and all errors of the group grow by that factor (Birge 1932).
// Fills NodeClock::offset_error and drift_error of a solution whose clocks and roots are known. An error is never
// larger than the bound allows. O(edges log nodes).
void set_likely_errors(const std::vector<Edge>& edges, Solution& solution);

// Returns the largest of 1, 10, 100 and 1000 ns, further up to stamp_unit_ns(), of which every timestamp of the
// domain's cells and collectives is a multiple, counted from a common zero. Rounding may have moved a timestamp by so
// much. An end is written as start and duration, each rounded, so a difference between timestamps of two clocks is
// wrong by less than the sum of their grains. O(timestamps), less where timestamps are fine.
int64_t stamp_grain_of(const Matches& matches, const ClockDomain& domain);

}  // namespace stageline::align
