// Arrows between slices: messages of the pipeline, launches of device work, forward to backward, and the source's own.
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

}  // namespace stageline
