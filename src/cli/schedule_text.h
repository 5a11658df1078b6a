// A replayed schedule drawn with characters.
#pragma once

#include <string>
#include <vector>

#include "pipeline/replay/replay.h"

namespace stageline {

// Returns one line for each rank, with time to the right. A cell is its label and a rule as long as the cell takes;
// idle time is dots. Wider drawings continue in further blocks of `width_columns`. Labels are "F3", or "F3a", "F3b"
// when there are several chunks. Returns "" when that would take more than kMaxDrawnRanks ranks or kMaxDrawnColumns
// columns.
inline constexpr size_t kMaxDrawnRanks = 64, kMaxDrawnColumns = 2000;
std::string drawn_schedule(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times,
                           int width_columns, bool colour);

}  // namespace stageline
