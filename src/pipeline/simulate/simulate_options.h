// The input of a simulation: a schedule, costs, faults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"

namespace stageline {

// One thing that goes wrong, as parse_fault() reads it. Fields that a kind does not use keep the values given here.
struct Fault {
  std::string kind;     // "slow-stage", …; fault_forms() lists them
  int32_t target = 0;   // the stage, rank or step that it happens to; −1 for all (for gc: all ranks)
  double factor = 1;    // the time is multiplied by this
  int32_t to = 0;       // slow-link: the stage that receives
  int32_t dp = -1;      // slow-link: the replica; −1 for all
  int64_t time_ns = 0;  // slow-link, gc, late-launch: the time that is added
  // gc: share of the cells; long-sequences: of the micro-batches; heavy-head: of a forward or backward.
  double share = 0;
  int32_t index = -1;  // wrong-order: position of the first of the two cells; −1 for the first that can be swapped
};

// Parses "slow-stage:2,1.3". Errors: kUsage with the forms that exist.
Result<Fault> parse_fault(std::string_view text);

// Returns the forms of faults, one a line with what it does: "slow-stage:STAGE,FACTOR    every cell of the stage …".
std::string fault_forms();

struct SimulateOptions {
  Schedule schedule;
  int32_t dp = 1;
  int32_t steps = 3;
  int32_t machines = 1;
  // Tensor- and context-parallel peers do the same work at the same time; every stage of every replica has `peers` of
  // them. The table rank_of maps (dp · stages + stage) · peers + peer to the global rank; when it is empty, that number
  // itself is the rank.
  int32_t peers = 1;
  std::vector<int32_t> rank_of;
  // An F&B cell has a cost of its own; in the trace it is written as an F and a B with the same interval.
  UnitCosts costs = {10'000'000, 10'000'000, 10'000'000, 20'000'000, 30'000'000, 0};
  int64_t optimizer_ns = 0;  // 0 for no optimizer cell
  int64_t reduce_ns = 0;  // how long adding up gradients takes, after the last cell of a stage on its slowest replica
  bool collectives = false;   // the reduction is a cell on every rank, from the rank's own last cell to its end
  bool messages = false;      // sends and receives are cells, and a link carries one message of a kind at a time
  double jitter = 0;          // standard deviation of a duration, as a share of its cost
  int64_t clock_skew_ns = 0;  // each machine's clock is off by up to ± this
  int64_t step_gap_ns = 1'000'000;
  int64_t start_ns = 1'721'470'000'000'000'000;  // wall-clock time of the first step
  std::vector<Fault> faults;
  uint64_t seed = 1;
};

}  // namespace stageline
