#include "compat/msprof/chart.h"

#include <algorithm>

#include "base/number.h"

namespace stageline {

bool PpChart::any_blocks() const {
  return std::ranges::any_of(ranks, [](const PpChartRank& rank) { return rank.blocks > 0; });
}

int64_t PpChart::unlabelled() const { return sum_over<int64_t>(ranks, &PpChartRank::unlabelled); }

}  // namespace stageline
