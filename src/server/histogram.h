// How long the slices of a name last: bins of durations, and the slices of some of them.
#pragma once

#include <string>

#include "server/query.h"
#include "server/timeline.h"

namespace stageline {

inline constexpr size_t kMostBins = 64;

// The answer to /api/histogram: of the names meant (name_ids or q, see names_meant; kind= for one kind of them) that
// start within the window. With min= and max= binary, the slices that last that long, as /api/slices sends them.
// O(slices of the lanes that may bear the names). Errors: kUsage.
struct HistogramAnswer {
  std::string body;
  bool is_binary = false;
};
Result<HistogramAnswer> histogram_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
