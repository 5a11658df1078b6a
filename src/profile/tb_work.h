// Computation, communication and their overlap in every step of a rank, and how much of the communication is waiting.
// Definitions: docs/analyses/tb-distributed.md.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/tb_collectives.h"
#include "profile/tb_run.h"

namespace stageline {

struct TbOverlap {  // parts of one step; they sum to its length
  int64_t computation_ns = 0, overlap_ns = 0, communication_ns = 0, other_ns = 0;
};
struct TbWait {  // parts of one step's communication; they sum to it
  int64_t transfer_ns = 0, synchronizing_ns = 0, unknown_ns = 0;
  int64_t message_transfer_ns = 0, message_wait_ns = 0;  // how much of the first two belongs to sends and receives
  int64_t exposed_wait_ns = 0;                           // waiting in collectives while nothing computes
};

// The cost of waiting in collectives in one step, while nothing computes.
struct TbStepWait {
  int64_t number = 0;     // of the step
  int64_t own_ns = 0;     // what the rank waits
  int64_t others_ns = 0;  // what all others wait in collectives to which this rank comes last
};

// The means over the steps of a rank, to the nanosecond.
struct TbMeanWork {
  int64_t step_ns = 0;
  TbOverlap overlap;
  TbWait wait;
};

struct TbRankWork {
  int32_t rank = 0;
  std::vector<TbStep> steps;
  std::vector<TbOverlap> overlaps;         // for each step
  std::vector<TbWait> waits;               // for each step
  std::vector<TbStepWait> step_waits;      // for each step
  int64_t collectives = 0, came_last = 0;  // those that were found on other ranks too
  std::vector<Interval> exposed;           // communication while nothing computes
  bool communicates = false;
  std::vector<TbCollective> calls;
  TbMeanWork mean() const;  // 0 without steps
};

// Without waits, which need all ranks. O(n log n) in the rows.
TbRankWork tb_work(const TbRun& run, const TbRank& rank);

// Matches the calls of all ranks and fills their `waits`.
TbJoin join_work(std::vector<TbRankWork>& ranks, bool one_clock);

}  // namespace stageline
