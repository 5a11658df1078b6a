// Makes a run that never was: a schedule replayed with costs, jitter, faults and skewed clocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"
#include "model/trace.h"

namespace stageline {

struct Fault {
  std::string kind;  // "slow-stage": every cell of the stage takes factor times as long
                     // "slow-rank": the same for one global rank
  int32_t target = 0;
  double factor = 1;
};

struct SimulateOptions {
  Schedule schedule;
  int32_t dp = 1;
  int32_t steps = 3;
  int32_t machines = 1;
  // Ranks that do the same work at the same time: tensor- and context-parallel peers, `peers` for every stage of every
  // replica. Global rank of (dp · stages + stage) · peers + peer; empty: that number itself.
  int32_t peers = 1;
  std::vector<int32_t> rank_of;
  // An F&B cell is written as an F and a B of one interval.
  UnitCosts costs = {10'000'000, 10'000'000, 10'000'000, 20'000'000, 30'000'000, 0};
  int64_t optimizer_ns = 0;   // 0: no optimizer cell
  int64_t reduce_ns = 0;      // between the last cell and the optimizer, when gradients are added up
  double jitter = 0;          // standard deviation of a cell's duration as a share of its cost
  int64_t clock_skew_ns = 0;  // each machine's clock is off by up to ± this
  int64_t step_gap_ns = 1'000'000;
  int64_t start_ns = 1'721'470'000'000'000'000;  // wall clock of the first step
  std::vector<Fault> faults;
  uint64_t seed = 1;
};

struct SimulatedRun {
  Trace trace;                           // stamps as the machines' clocks would write them
  std::vector<int64_t> clock_offset_ns;  // per machine: its clock minus the true time
};

// Rank of (stage, dp) is dp · stages + stage unless rank_of says otherwise; machines hold equal blocks of ranks (the
// last one may be short). A slow rank slows its peers, which wait for it in every layer. Deterministic: the same
// options give the same bytes on every platform. Errors: kUsage for options that do not fit together, kBadInput when
// the schedule deadlocks.
Result<SimulatedRun> simulate_run(const SimulateOptions& options);

// "slow-stage:2,1.3" → Fault. Errors: kUsage with the forms.
Result<Fault> parse_fault(std::string_view text);

}  // namespace stageline
