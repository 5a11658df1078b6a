// Finds the position of a rank among the ranks of its stage.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/order/rank_lists.h"

namespace stageline {

// Returns the tensor-parallel index of each part that has lists: its place among the parts of its (replica, stage);
// kUnknown for other parts. O(lists).
std::vector<int32_t> list_positions(const RankLists& lists, size_t parts);

}  // namespace stageline
