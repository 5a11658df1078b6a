// The stretches of rows that one rank has in one step.
#pragma once

#include <vector>

#include "model/cells.h"

namespace stageline {

// The rows [begin, end) of one rank in one step, in sorted cells.
struct RankRange {
  int32_t step, part;
  size_t begin, end;
};
std::vector<RankRange> rank_ranges(const Cells& cells);  // O(cells)

}  // namespace stageline
