// The rank that is slower than the others of its own stage.
#pragma once

#include <optional>

#include "model/pipeline_sums.h"

namespace stageline {

struct SlowRank {
  size_t part = 0;   // index of Trace::parts
  double ratio = 1;  // of its time to the median of its peers'
};

// Judged by all it computes and by its usual cells (medians by kind, as many as it has): one hiccup lengthens the first
// alone, so the smaller of the two ratios counts. The slowest of those that reach `least`; steps in `without`
// (ascending) do not count. Expects stages to be known. O(cells log cells).
std::optional<SlowRank> slow_rank(const Trace& trace, const PipelineSums& sums, const std::vector<int32_t>& without,
                                  double least);

// By part: over kinds, the median of its compute cells times their number, steps in `without` left out.
std::vector<double> usual_busy_ns(const Trace& trace, const std::vector<int32_t>& without);

}  // namespace stageline
