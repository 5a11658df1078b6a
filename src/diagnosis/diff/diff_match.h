// Estimates the time of every operation of run B in run A: the time of the operation at the same place or, if there is
// none, of similar ones. It is part of run_diff.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/replay/step_graph.h"

namespace stageline {

struct DiffMatch {
  OpTimes a_times;             // for each operation of B
  std::vector<bool> is_exact;  // for each operation of B
  int64_t matched = 0, unmatched = 0, unused = 0;
};

// `pair_of` gives for each step of B the step of A that it is compared with (both index StepGraph::steps), or −1, so
// that its own times stay. `usual_a` says for each step of A whether it counts in means.
//
// Operations match by replica, stage, place among the ranks of both, kind (collectives by type), chunk, and
// micro-batch. Micro-batches are numbered by the order of their labels within a chunk or, where one of the runs does
// not know them, by order of time. Operations that are equal in all this match by order. Others take A's mean of
// (stage, kind, chunk), of (stage, kind), or of the kind; compute times then scale with the number of virtual stages. A
// B equals an I and a W together, which share a B's time as they do in B.
//
// If only one run recorded messages, a message's transfer is compared and B's own delay stays: the early post of a
// receive is not part of an unrecorded message. O(operations · log operations of a step).
DiffMatch match_operations(const StepGraph& a, const StepGraph& b, const Trace& trace_a, const Trace& trace_b,
                           const std::vector<int64_t>& pair_of, const std::vector<bool>& usual_a);

}  // namespace stageline
