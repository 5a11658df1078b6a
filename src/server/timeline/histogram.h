// Computes how long the slices of a name last: counts of durations in bins, and the slices of some bins.
#pragma once

#include <string>

#include "server/http/query.h"
#include "server/timeline/timeline.h"

namespace stageline {

inline constexpr size_t kMaxBins = 64;

// The answer to /api/histogram, for the names that are meant (name_ids or q, see names_meant; kind= limits it to one
// kind of them) and slices that start within the window. With min= and max= it is binary: the slices that last that
// long, as /api/slices sends them. O(slices of the lanes that may have the names). Errors: kUsage.
struct HistogramAnswer {
  std::string body;
  bool is_binary = false;
};
Result<HistogramAnswer> histogram_answer(const Timeline& timeline, const Query& query);

}  // namespace stageline
