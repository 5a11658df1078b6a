// What cells start later than they could: pauses (few, long) and late launches (all of them).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/measure/run_coverage.h"
#include "pipeline/replay/step_graph.h"

namespace stageline {

struct RankDelays {
  int64_t cells = 0;                 // compute cells but the first of a step, which waits for data and the step before
  double late_ns = 0;                // lower quartile of their delays: what nearly all of them have
  bool late = false;                 // that is a late launch: beside its cells, and beside what other ranks have
  double pause_ns = 0;               // sum of the pauses
  std::vector<int64_t> pause_at_ns;  // starts of the cells after a pause, ascending, on common time
};

struct HostDelays {
  std::vector<RankDelays> ranks;    // by part
  std::vector<double> pause_of_op;  // by operation: what of its delay is a pause; 0
  double usual_late_ns = 0;         // median over ranks of late_ns
};

inline constexpr double kPauseShare = 0.25;  // of the usual cell of its rank

// A pause: a delay of at least a quarter of the rank's usual cell (kPauseShare), and at least five times the upper
// quartile of delays of its rank and sort – after a message forward, backward, or after its own rank – so that a slow
// link, which delays a whole sort, is none. Steps that do not count have none, nor cells whose input was not read or
// that are there twice. O(ops log ops).
HostDelays host_delays(const Trace& trace, const StepGraph& graph, const RunCoverage& coverage);

}  // namespace stageline
