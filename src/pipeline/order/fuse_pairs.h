// A schedule whose forwards and backwards stand one after the other, as a run has it that works on two of them at once.
//
// Megatron's overlap_moe_expert_parallel_comm and Paddle's enable_backward_forward_overlap leave the order as it is and
// run the steady F and B as one cell. A replay that takes them one after the other is slower than the run itself.
#pragma once

#include "pipeline/order/schedule_places.h"

namespace stageline {

// Neighbours that more than half of the lists of that stage ran as one become one cell; `schedule` unchanged when it
// has such cells of its own, or none of the lists of its number of micro-batches has. O(tokens + cells).
Schedule fuse_pairs(Schedule schedule, const RankLists& lists);

// Two that run as one have no order of their own: they are put as an order of single cells has them. `places` is that
// order's. O(tokens).
void order_pairs_as(const SchedulePlaces& places, int32_t stage, std::vector<WorkToken>& tokens);

// Has the schedule cells of two?
bool has_pairs(const Schedule& schedule);

}  // namespace stageline
