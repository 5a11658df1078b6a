// Is this order one that a pipeline can run at all? For orders that were read, not made.
#pragma once

#include "base/result.h"
#include "model/schedule.h"

namespace stageline {

// Every rank must have one F and one backward (B, or I and then W) of every (micro-batch, chunk), in that order; with
// ChunkLayout::kBidirectional every micro-batch has one chunk, the same on all ranks. Whether ranks wait for each other
// in a circle is replay()'s to say. Errors: kBadInput naming rank, position and cell. O(cells), memory 1 byte per
// (micro-batch, chunk).
Status check_order(const Schedule& schedule);

}  // namespace stageline
