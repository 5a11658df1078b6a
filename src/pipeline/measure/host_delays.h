// Computes how much later cells start than they could: pauses (few and long) and late launches (every cell a little).
#pragma once

#include "pipeline/measure/run_coverage.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

struct RankDelays {
  int64_t cells = 0;   // compute cells except the first of each step, which waits for data and for the step before
  double late_ns = 0;  // lower quartile of their delays: three of four cells are at least this late
  // True if late_ns counts as a late launch: it is large compared with the rank's cells and with other ranks' delays.
  bool late = false;
  double pause_ns = 0;               // sum of the pauses
  std::vector<int64_t> pause_at_ns;  // starts of the cells after a pause, ascending, on common time
};

struct HostDelays {
  std::vector<RankDelays> ranks;  // by part
  double usual_late_ns = 0;       // median over ranks of late_ns
};

inline constexpr double kPauseShare = 0.25;  // share of the usual cell of its rank

// A delay is a pause from a quarter of the rank's usual cell (kPauseShare) and five times the upper quartile of delays
// of its rank and sort on. The sort is what the cell waited for last: a forward message, a backward message or its own
// rank. A slow link delays all cells of a sort and so does not count as a pause. Steps that do not count have no
// pauses. Neither do cells whose input was not read or that occur twice. O(ops log ops).
HostDelays host_delays(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage);

}  // namespace stageline
