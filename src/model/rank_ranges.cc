#include "model/rank_ranges.h"

namespace stageline {

std::vector<RankRange> rank_ranges(const Cells& cells) {
  std::vector<RankRange> ranges;
  for (const StepRange& step : step_ranges(cells))
    for (size_t i = step.begin; i < step.end;) {
      size_t end = i + 1;
      while (end < step.end && cells.part[end] == cells.part[i]) ++end;
      ranges.push_back({step.step, cells.part[i], i, end});
      i = end;
    }
  return ranges;
}

}  // namespace stageline
