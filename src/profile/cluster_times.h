// Where the time of a rank went, step by step.
//
//   host step   ├─────────────────────────────────────────┤
//   device          ├ compute ┤├── exposed ──┤ free ├ compute ┤
//               ├──┤ preparing  ├─────────── span ────────────┤
//
// span = computing + exposed communication + exposed copies + free.
#pragma once

#include "model/intervals.h"
#include "model/table.h"
#include "profile/communication_ops.h"

namespace stageline {

struct ClusterStep {
  std::vector<Interval> compute, communication, messages, memory;  // raw intervals first, then their unions
  Span work;
  int64_t step_ns = kNullInteger, host_start = INT64_MIN;

  int64_t compute_ns = 0, communication_ns = 0, overlap_ns = 0, exposed_ns = 0, memory_ns = 0, exposed_memory_ns = 0;
  int64_t bubble_ns = 0, free_ns = 0;
  int64_t wait_ns = 0, transfer_ns = 0;  // of the collectives for which they are known
  int64_t collectives = 0, known = 0;
  bool waits_known() const { return known > 0 || collectives == 0; }
  int64_t span_ns() const { return work.length_ns(); }
};

using ClusterTimes = std::map<int32_t, ClusterStep>;  // for each step; −1: outside of steps

// After match_collectives. O(n log n) in the rows.
ClusterTimes cluster_times(const TorchRun& run, const TorchRank& rank, const std::vector<CommunicationOp>& ops);

// The sums over the steps of a rank; of all its work where it has no steps.
struct ClusterSum {
  int64_t steps = 0, span_ns = 0, compute_ns = 0;
  int64_t exposed_message_ns = 0, exposed_collective_ns = 0, exposed_memory_ns = 0, free_ns = 0;
  bool waits_known = true;
  int64_t wait_ns = 0;  // waiting in collectives
};
ClusterSum cluster_sum(const ClusterTimes& times);

}  // namespace stageline
