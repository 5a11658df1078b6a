// Divides the time of a communication operation into transfer, waiting and the rest. Definitions:
// docs/analyses/communication-time-sum.md.
#pragma once

#include <cstdint>
#include <vector>

#include "profile/communication_ops.h"

namespace stageline {

enum class Basis : uint8_t { kNone, kMatched, kTasks };
constexpr const char* basis_text(Basis basis) {
  return basis == Basis::kTasks ? "tasks" : basis == Basis::kMatched ? "other ranks" : "";
}

struct OpTime {
  CommunicationOp op;
  Basis basis = Basis::kNone;
  int64_t transit_ns = 0, wait_ns = 0, sync_ns = 0;
  int64_t idle_ns() const { return op.dur_ns - transit_ns - wait_ns; }
};

// Returns the times of one rank's operations, after match_collectives. They are computed from the operations' tasks;
// without tasks, from the other ranks, when all ranks of the group are there; otherwise they stay unknown. `msprof`: as
// in the profiler's own sums. O(n log n) in tasks.
std::vector<OpTime> op_times(const TorchRun& run, const std::vector<CommunicationOp>& ops, const Part& part,
                             bool msprof);

}  // namespace stageline
