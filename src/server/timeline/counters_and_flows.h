// Counters, and arrows between slices: messages of the pipeline, launches of device work, forward to backward, and the
// source's own.
#pragma once

#include <string>

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

// Answers /api/flows: arrows with at least one end in the lanes and the window. Launches are omitted if more than
// kMaxLaunchSlices slices would have to be read; that number of arrows would hide everything anyway. O(links + slices
// in the window). Errors: kUsage.
inline constexpr size_t kMaxLaunchSlices = 500'000;
Result<std::string> flows_answer(const Timeline& timeline, const Query& query);

// Counters over time, one column of pixels at a time.

// The answer to /api/counter: least, greatest and mean value in each of n columns of the window. A value holds from its
// sample to the next one, and means are over time. Columns before the first sample are NaN. O(samples in the window +
// n). Errors: kUsage.
Result<std::string> counter_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
