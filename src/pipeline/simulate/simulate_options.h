// What a run that never was is made of: a schedule, costs, faults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/schedule.h"

namespace stageline {

// One thing that goes wrong, as parse_fault() reads it. What a kind does not name stays as it is here.
struct Fault {
  std::string kind;     // "slow-stage", …: see fault_forms()
  int32_t target = 0;   // stage, rank or step that it happens to; −1: all (of gc: ranks)
  double factor = 1;    // how many times as long
  int32_t to = 0;       // slow-link: the stage that receives
  int32_t dp = -1;      // slow-link: the replica; −1: all
  int64_t time_ns = 0;  // slow-link, gc, late-launch: what is added
  double share = 0;     // gc: of the cells; long-sequences: of the micro-batches; heavy-head: of a forward or backward
  int32_t index = -1;   // wrong-order: position of the first of the two cells; −1: the first that can be swapped
};

// "slow-stage:2,1.3" → Fault. Errors: kUsage with the forms.
Result<Fault> parse_fault(std::string_view text);

// One form a line, with what it does: "slow-stage:STAGE,FACTOR    every cell of the stage …".
std::string fault_forms();

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
  int64_t reduce_ns = 0;      // after the slowest replica's last cell of a stage, when gradients are added up
  bool collectives = false;   // the reduction is a cell of every rank: from its own last cell to its end
  bool messages = false;      // sends and receives are cells, and a link carries one message of a kind at a time
  double jitter = 0;          // standard deviation of a duration as a share of its cost
  int64_t clock_skew_ns = 0;  // each machine's clock is off by up to ± this
  int64_t step_gap_ns = 1'000'000;
  int64_t start_ns = 1'721'470'000'000'000'000;  // wall clock of the first step
  std::vector<Fault> faults;
  uint64_t seed = 1;
};

}  // namespace stageline
