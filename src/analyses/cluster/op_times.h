// What of a communication operation was transfer, waiting and neither. Definitions:
// docs/analyses/communication-time-sum.md.
#pragma once

#include <cstdint>
#include <vector>

#include "analyses/cluster/communication_ops.h"

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

// Of the operations of one rank, after match_collectives: from their tasks, else from the other ranks where all of the
// group are there, else nothing. `msprof`: as the profiler's own sums have it. O(n log n) in tasks.
std::vector<OpTime> op_times(const TorchRun& run, const std::vector<CommunicationOp>& ops, const Part& part,
                             bool msprof);

}  // namespace stageline
