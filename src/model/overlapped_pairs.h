// Which cells are the two halves of one overlapped forward and backward.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cells.h"

namespace stageline {

// By cell: the other half of an overlapped forward and backward – an F and a B or I of one rank and step with the same
// times, longer than nothing –; kNoPair for a cell that stands alone. Expects sorted cells. O(cells).
inline constexpr uint32_t kNoPair = UINT32_MAX;
std::vector<uint32_t> overlapped_pairs(const Cells& cells);

}  // namespace stageline
