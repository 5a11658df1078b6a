// What every operation of run B would have taken in run A: of the operation that has the same place there, else of its
// like. Part of run_diff.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/replay/step_graph.h"

namespace stageline {

struct DiffMatch {
  OpTimes a_times;             // by operation of B
  std::vector<bool> is_exact;  // by operation of B
  int64_t matched = 0, unmatched = 0, unused = 0;
};

// `pair_of`: by step of B, the step of A (indexes into StepGraph::steps) that it is compared with, or −1 (its own times
// stay). `usual_a`: by step of A, whether it counts for means. Operations match by replica, stage, place among the
// ranks of both, kind (collectives by type), chunk, and micro-batch in the order of labels of the chunk (by order of
// time where one of the runs does not know micro-batches); equal ones by order. Others take A's mean of (stage, kind,
// chunk), of (stage, kind), or of the kind, compute then in proportion to the number of virtual stages; a B is an I and
// a W together, and apart as they are in B. Where one run recorded messages and the other did not, a message's transfer
// is compared and B's own delay stays: a receive that is posted early is no part of a message that nobody recorded.
// O(operations · log operations of a step).
DiffMatch match_operations(const StepGraph& a, const StepGraph& b, const Trace& trace_a, const Trace& trace_b,
                           const std::vector<int64_t>& pair_of, const std::vector<bool>& usual_a);

}  // namespace stageline
