// Simulates a run: a schedule is replayed with costs, jitter, faults and skewed clocks.
#pragma once

#include "model/schedule.h"
#include "model/trace.h"

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

// Checks that faults name ranks and stages that the run has, and that their numbers are within limits. Errors: kUsage.
Status check_faults(const SimulateOptions& options);

// Returns the schedule as the faults wrong-order and missing-dw leave it. Errors: kUsage where nothing can be swapped
// or merged.
Result<Schedule> faulty_order(const SimulateOptions& options);

// Limits of what faults may stretch one cell by, and of what they may add to a cell or a message.
struct FaultLimits {
  double factor = 1;
  int64_t cell_ns = 0, message_ns = 0;
};
FaultLimits fault_limits(const SimulateOptions& options);

// Draws everything random from the seed and from what it happens to, so the order of asking does not matter.
class FaultModel {
 public:
  // `place_of` maps a rank to dp · stages + stage. `options` must outlive the model.
  FaultModel(const SimulateOptions& options, const std::vector<int32_t>& place_of);

  // Returns by how much a cell's cost is multiplied. O(faults).
  double cell_factor(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const;
  double optimizer_factor(int32_t step, int32_t place) const;
  // Returns the time between the moment a cell could start and its start.
  int64_t delay_ns(int32_t step, int32_t dp, int32_t stage, const ScheduleCell& cell) const;
  // Returns the time of a message from one stage to another.
  int64_t transfer_ns(int32_t dp, int32_t from, int32_t to) const;
  bool delays() const { return delays_; }
  bool slow_links() const { return slow_links_; }

 private:
  const SimulateOptions& options_;
  std::vector<int32_t> fault_place_;  // for each fault of a rank, the place of that rank
  bool delays_ = false, slow_links_ = false;
};

struct SimulatedRun {
  Trace trace;                           // with timestamps as the machines' clocks would write them
  std::vector<int64_t> clock_offset_ns;  // for each machine, its clock minus the true time
  Schedule schedule;                     // the order that ran, including faults of the order
};

// The rank of (stage, dp) is dp · stages + stage unless rank_of says otherwise. Machines hold equal blocks of ranks;
// the last one may be short. A slow rank slows its peers, since they wait for it in every layer. The result is
// deterministic: the same options give the same bytes on every platform, and adding a fault changes no random number of
// anything else. With messages, a send lasts from the end of its cell (or of the message before it on its link) until
// the message is complete. A receive is posted when the previous forward (backward) has ended and the previous receive
// on its link is complete, but early enough for its message. It ends together with its send. Cells of one (step, rank)
// are in order of start. Errors: kUsage for options that do not fit together, kBadInput when the schedule deadlocks.
Result<SimulatedRun> simulate_run(const SimulateOptions& options);

}  // namespace stageline
