// Checks whether an order is one that a pipeline can run at all. For orders that were read from a file rather than
// made.
#pragma once

#include "model/schedule.h"

namespace stageline {

// Every rank must have exactly one F and one backward (B, or I and then W) of every (micro-batch, chunk), F before
// backward. With ChunkLayout::kBidirectional every micro-batch has one chunk, the same on all ranks. replay() checks
// that ranks do not wait for each other in a circle. Errors: kBadInput naming rank, position and cell. O(cells), memory
// 1 byte per (micro-batch, chunk).
Status check_order(const Schedule& schedule);

}  // namespace stageline
