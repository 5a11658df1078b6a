// How long ranks would wait under the recognised schedule if every stage cost the same and messages took no time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/words.h"
#include "pipeline/order/recognise.h"
#include "pipeline/sums/stage_costs.h"

namespace stageline {

// Returns the mean over ranks of span bubble ÷ span. It replays the best candidate at its own sizes with the median
// stage's mean costs of F, B, I, W and F&B; an unmeasured F&B costs F + B. Returns NaN if no schedule is recognised,
// if a cost that its cells need was not measured, or if it has more than kMaxIdealCells cells. O(cells of the
// schedule).
double ideal_bubble(const Recognition& recognition, const std::vector<StageCost>& costs);

// Returns a sentence that compares `measured`, the share of the pipeline's span that ranks wait, with the recognised
// schedule's own share. Where none is recognised, it compares with the formula of 1F1B; with several chunks or split
// backwards, with nothing.
Text bubble_words(const Trace& trace, const std::vector<StageCost>& costs, int64_t steps, double measured,
                  const Recognition& recognition);

inline constexpr int64_t kMaxIdealCells = int64_t{1} << 21;

}  // namespace stageline
