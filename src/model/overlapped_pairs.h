// Which cells are two pieces of one: the halves of an overlapped forward and backward, a backward and its loss's part.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cells.h"

namespace stageline {

// By cell: the other half of an overlapped forward and backward – an F and a B or I of one rank and step with the same
// times, longer than nothing –; kNoPair for a cell that stands alone. Expects sorted cells. O(cells).
inline constexpr uint32_t kNoPair = UINT32_MAX;
std::vector<uint32_t> overlapped_pairs(const Cells& cells);

// By cell: the backward of which it is the loss's part, where that is marked apart (MindSpeed's DualPipeV does) – the B
// or I of the same step, rank, micro-batch and chunk that begins after it, at most one other piece of work between –;
// kNoPair for all others. Time of both is one backward's. Expects sorted cells. O(cells).
std::vector<uint32_t> loss_backwards(const Cells& cells);

}  // namespace stageline
