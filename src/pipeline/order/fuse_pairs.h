// Changes a schedule whose forwards and backwards follow each other into what a run does that works on two of them at
// once.
//
// Megatron's overlap_moe_expert_parallel_comm and Paddle's enable_backward_forward_overlap keep the order and run a
// forward and a backward of the steady phase as one cell. A replay that runs these one after the other would be slower
// than the run itself.
#pragma once

#include "pipeline/order/schedule_places.h"

namespace stageline {

// Neighbours that more than half of the stage's lists ran as one become one cell. Returns `schedule` unchanged when it
// has such cells itself, or when no list with its number of micro-batches has. O(tokens + cells).
Schedule fuse_pairs(Schedule schedule, const RankLists& lists);

// Two cells that ran as one have no order of their own. In a comparison with an order of single cells they take the
// order of that schedule, given by `places`. O(tokens).
void order_pairs_as(const SchedulePlaces& places, int32_t stage, std::vector<WorkToken>& tokens);

// Returns true when the schedule has cells of two actions.
bool has_pairs(const Schedule& schedule);

}  // namespace stageline
