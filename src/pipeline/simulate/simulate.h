// Makes a run that never was: a schedule replayed with costs, jitter, faults and skewed clocks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"
#include "model/trace.h"
#include "pipeline/simulate/simulate_options.h"

namespace stageline {

struct SimulatedRun {
  Trace trace;                           // stamps as the machines' clocks would write them
  std::vector<int64_t> clock_offset_ns;  // per machine: its clock minus the true time
  Schedule schedule;                     // the order that ran: faults of the order are in it
};

// Rank of (stage, dp) is dp · stages + stage unless rank_of says otherwise; machines hold equal blocks of ranks (the
// last one may be short). A slow rank slows its peers, which wait for it in every layer. Deterministic: the same
// options give the same bytes on every platform, and a fault changes no random number of anything else.
// With messages a send lasts from the end of the cell (or of the message before it on its link) until it is through; a
// receive is posted when the forward (backward) before the one that it feeds has ended and the receive before it on its
// link is through, but in time for its message, and ends with its send.
// Cells of one (step, rank) are in order of start. Errors: kUsage for options that do not fit together, kBadInput when
// the schedule deadlocks.
Result<SimulatedRun> simulate_run(const SimulateOptions& options);

}  // namespace stageline
