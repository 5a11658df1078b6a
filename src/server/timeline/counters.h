// Counters over time, one column of pixels at a time.
#pragma once

#include <string>

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

// The answer to /api/counter: least, greatest and mean value in each of n columns of the window. A value holds from its
// sample to the next one, and means are over time. Columns before the first sample are NaN. O(samples in the window +
// n). Errors: kUsage.
Result<std::string> counter_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
