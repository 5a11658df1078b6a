// Simulates a run: a schedule is replayed with costs, jitter, faults and skewed clocks.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"
#include "model/trace.h"
#include "pipeline/simulate/simulate_options.h"

namespace stageline {

struct SimulatedRun {
  Trace trace;                           // with timestamps as the machines' clocks would write them
  std::vector<int64_t> clock_offset_ns;  // for each machine, its clock minus the true time
  Schedule schedule;                     // the order that ran, including faults of the order
};

// The rank of (stage, dp) is dp · stages + stage unless rank_of says otherwise. Machines hold equal
// blocks of ranks; the last one may be short. A slow rank slows its peers, since they wait for it in
// every layer. The result is deterministic: the same options give the same bytes on every platform,
// and adding a fault changes no random number of anything else. With messages, a send lasts from the
// end of its cell (or of the message before it on its link) until the message is complete. A receive
// is posted when the previous forward (backward) has ended and the previous receive on its link is
// complete, but early enough for its message. It ends together with its send. Cells of one (step,
// rank) are in order of start. Errors: kUsage for options that do not fit together, kBadInput when the
// schedule deadlocks.
Result<SimulatedRun> simulate_run(const SimulateOptions& options);

}  // namespace stageline
