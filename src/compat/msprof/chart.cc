#include "compat/msprof/chart.h"

#include <algorithm>

namespace stageline {

bool PpChart::any_blocks() const {
  return std::ranges::any_of(ranks, [](const PpChartRank& rank) { return rank.blocks > 0; });
}

int64_t PpChart::unlabelled() const {
  int64_t count = 0;
  for (const PpChartRank& rank : ranks) count += rank.unlabelled;
  return count;
}

}  // namespace stageline
