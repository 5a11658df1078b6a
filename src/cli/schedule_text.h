// A replayed schedule drawn with characters.
#pragma once

#include <string>
#include <vector>

#include "pipeline/replay/replay.h"

namespace stageline {

// One line a rank, time to the right; a cell is its label and a rule as long as it takes, idle time is dots. Wider
// drawings continue in further blocks of `width_columns`. Labels: "F3", with several chunks "F3a", "F3b".
// "" when that would take more than kMostDrawnRanks ranks or kMostDrawnColumns columns.
inline constexpr size_t kMostDrawnRanks = 64, kMostDrawnColumns = 2000;
std::string drawn_schedule(const Schedule& schedule, const std::vector<std::vector<ReplayedCell>>& times,
                           int width_columns, bool colour);

}  // namespace stageline
