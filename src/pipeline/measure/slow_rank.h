// Finds the rank that is slower than the others of its own stage.
#pragma once

#include <optional>

#include "pipeline/sums/pipeline_sums.h"

namespace stageline {

struct SlowRank {
  size_t part = 0;   // index of Trace::parts
  double ratio = 1;  // its time to the median of its peers' times
};

// A rank is judged by all that it computes and by its usual cells (the median of each kind times its number of cells).
// One hiccup lengthens only the first, so the smaller of the two ratios counts. Returns the slowest rank that reaches
// `least`; steps in `without` (ascending) do not count. Expects stages to be known. O(cells log cells).
std::optional<SlowRank> slow_rank(const Trace& trace, const PipelineSums& sums, const std::vector<int32_t>& without,
                                  double least);

// For each part: the sum over kinds of the median of its compute cells times their number, steps in `without` left out.
std::vector<double> usual_busy_ns(const Trace& trace, const std::vector<int32_t>& without);

}  // namespace stageline
