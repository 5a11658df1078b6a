// Finds cells that are two pieces of one: the two halves of an overlapped forward and backward, and a backward and the
// backward of its loss.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cells.h"

namespace stageline {

// Returns for each cell the other half of its overlapped forward and backward, kNoPair for a cell without one. Two
// halves are an F and a B or I of one rank and step with the same start and end and a length above zero. Expects sorted
// cells. O(cells).
inline constexpr uint32_t kNoPair = UINT32_MAX;
std::vector<uint32_t> overlapped_pairs(const Cells& cells);

// Some sources mark the backward of the loss apart from the backward of the layers (MindSpeed's DualPipeV does).
// Returns for each such cell the backward that it belongs to, kNoPair for all other cells. That is the B or I of the
// same step, rank, micro-batch and chunk that begins after it, with at most one other piece of work between. The time
// of both together is that of one backward. Expects sorted cells. O(cells).
std::vector<uint32_t> loss_backwards(const Cells& cells);

}  // namespace stageline
