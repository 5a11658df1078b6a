// What a recognised schedule would wait if every stage cost the same and messages took no time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/words.h"
#include "model/stage_costs.h"
#include "pipeline/order/recognise.h"

namespace stageline {

// Mean over ranks of span bubble ÷ span, in a replay of the best candidate at its sizes with the median stage's mean
// costs of F, B, I, W and F&B; NaN where nothing is recognised, a cost that its cells need was not measured (F&B
// counts as F + B then), or it has more than kMostIdealCells cells. O(cells of the schedule).
double ideal_bubble(const Recognition& recognition, const std::vector<StageCost>& costs);

// What `measured`, the share of the pipeline's span that ranks wait, is compared with: the recognised schedule's own;
// where none is, the formula of 1F1B; with several chunks or split backwards nothing.
Text bubble_words(const Trace& trace, const std::vector<StageCost>& costs, int64_t steps, double measured,
                  const Recognition& recognition);

inline constexpr int64_t kMostIdealCells = int64_t{1} << 21;

}  // namespace stageline
